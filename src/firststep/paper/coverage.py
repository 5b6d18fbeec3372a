"""What of a stored table was run here: its rows apart, its cells counted, what is missing named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from firststep.utils.table import MISSING, Cell, Table

OURS, PAPER, GAIN = "ours", "paper", "gain, ours"
PRINTED = (PAPER, "gain, paper")
STEP = "step "
"""What the heading of a column of accuracies begins with."""


@dataclass
class StoredRow:
    """The lines of one row of a table."""

    label: str
    lines: list[list[str]] = field(default_factory=list)

    def cells(self, what: str, places: Sequence[int]) -> dict[int, str]:
        """Column → text, of those cells of a line that hold a number."""
        found = next((line for line in self.lines if line[1] == what), [])
        return {place: found[place] for place in places if found and found[place] not in ("", MISSING)}

    def without_ours(self) -> StoredRow:
        """The paper's lines alone."""
        lines = [line for line in self.lines if line[1] in PRINTED]
        if lines and lines[0][0] != self.label:
            lines[0] = [self.label, *lines[0][1:]]
        return StoredRow(self.label, lines)


@dataclass(frozen=True)
class Coverage:
    """A table by its rows, and how much of it there is."""

    columns: list[str]
    rows: list[StoredRow]

    @property
    def places(self) -> list[int]:
        """The columns of accuracies."""
        return [place for place, name in enumerate(self.columns) if name.startswith(STEP)]

    @property
    def run(self) -> list[StoredRow]:
        """Rows with a number of ours."""
        return [row for row in self.rows if row.cells(OURS, self.places)]

    @property
    def not_run(self) -> list[StoredRow]:
        return [row for row in self.rows if not row.cells(OURS, self.places)]

    @property
    def ours(self) -> int:
        """Cells with an accuracy of ours."""
        return sum(len(row.cells(OURS, self.places)) for row in self.rows)

    @property
    def incomplete(self) -> int:
        """Those of ours that are from some of the seeds only."""
        texts = [text for row in self.rows for text in row.cells(OURS, self.places).values()]
        return sum(re.search(r"\(\d+ of \d+\)$", text) is not None for text in texts)

    @property
    def printed(self) -> int:
        """Cells that the paper prints."""
        return sum(len(row.cells(PAPER, self.places)) for row in self.rows)

    @property
    def beside(self) -> int:
        """Cells that the paper prints and that have one of ours beside them."""
        return sum(
            len(row.cells(PAPER, self.places).keys() & row.cells(OURS, self.places)) for row in self.rows
        )

    def missing(self) -> list[str]:
        """What a reader would look for and not find: rows, and steps of the rows that there are."""
        gaps = [row.label for row in self.not_run]
        for row in self.run:
            absent = row.cells(PAPER, self.places).keys() - row.cells(OURS, self.places)
            if absent:
                gaps.append(f"{row.label} ({', '.join(self.columns[place] for place in sorted(absent))})")
        return gaps

    def table(self, rows: Sequence[StoredRow]) -> Table:
        """Some of its rows as a table, without columns that are empty for them.

        Gains whose interval leaves out zero are bold.
        """
        lines = [line for row in rows for line in row.lines]
        filled = [
            place
            for place in range(len(self.columns))
            if place < 2 or any(line[place] not in ("", MISSING) for line in lines)
        ]
        table = Table([self.columns[place] for place in filled], left_aligned=2)
        for line in lines:
            is_gain = line[1] == GAIN
            table.add_row(*(Cell(line[p], bold=is_gain and _is_clear(line[p])) for p in filled))
        return table


def read_coverage(table: Table) -> Coverage:
    """Of a table as :func:`firststep.paper.comparison_table.build_table` makes them."""
    rows: list[StoredRow] = []
    for cells in table.rows:
        line = [cell.text for cell in cells]
        # The first line of a row carries its label; that of its gains says over which row they are.
        if not rows or (line[0] and not line[0].startswith(" ")):
            rows.append(StoredRow(line[0]))
        rows[-1].lines.append(line)
    return Coverage(list(table.columns), rows)


def _is_clear(text: str) -> bool:
    found = re.match(r"([+-][\d.]+) ± ([\d.]+)", text)
    return found is not None and abs(float(found[1])) > float(found[2])
