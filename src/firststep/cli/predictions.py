"""Show predicted classes of images as a table, CSV or JSON."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firststep.cli.terminal import console, render
from firststep.evaluation._internal import NONE_LIMIT
from firststep.utils import Cell, Table

LONGEST_NAME = 20
"""Number of characters of a class name that are shown; the rest of the line shows the file name."""
SHORTEST_NAME = 16
"""Number of characters of a file name that are shown even on a narrow terminal."""
LEFT_OUT = "..."
NONE_OF_THESE = "none of these"


@dataclass(frozen=True)
class Predictions:
    classes: list[str]
    files: Sequence[Path | str]
    """What was classified: files, or the texts themselves."""
    probabilities: list[list[float]]
    """Probabilities of the classes, per file."""
    labels: list[str] | None = None
    """True classes, if known."""
    none: list[float] | None = None
    """Scores of "none of these classes", if the model has them."""
    what: str = "image"
    """Name of the column of ``files``."""

    def numbers(self) -> list[int]:
        """Return the indices of the predicted classes."""
        return [max(range(len(row)), key=row.__getitem__) for row in self.probabilities]

    def show(self, format: str) -> None:
        """Print to standard output and flush, so that a full disk is reported before anything else."""
        if format == "json":
            print(json.dumps(self._rows(), indent=2, ensure_ascii=False))
        elif format == "csv":
            self.show_row("csv", head=True)
        else:
            screen = console()
            screen.print(render(self._table(screen.width)))
        sys.stdout.flush()

    def show_row(self, format: str, head: bool) -> None:
        """Print CSV rows, with the column names if ``head``, or one JSON object per line, and flush."""
        rows = self._rows()
        table = csv.writer(sys.stdout, lineterminator="\n")
        if format == "csv" and head:
            table.writerow(self._columns())
        for row in rows:
            if format == "csv":
                table.writerow(self._values(row))
            else:
                print(json.dumps(row, ensure_ascii=False))
        sys.stdout.flush()

    def _columns(self) -> list[str]:
        return [*self._own_columns(), *self.classes]

    def _own_columns(self) -> list[str]:
        known = ["label"] if self.labels is not None else []
        unusual = ["none"] if self.none is not None else []
        return [self.what, *known, "class", "probability", *unusual]

    def _values(self, row: dict[str, Any]) -> list[Any]:
        return [*(row[name] for name in self._own_columns()), *row["all"].values()]

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        labels: Sequence[str | None] = self.labels or [None] * len(self.files)
        scores: Sequence[float | None] = self.none or [None] * len(self.files)
        for file, row, best, label, score in zip(
            self.files, self.probabilities, self.numbers(), labels, scores, strict=True
        ):
            refused = score is not None and score > NONE_LIMIT
            rows.append(
                {
                    self.what: str(file),
                    **({} if label is None else {"label": label}),
                    "class": NONE_OF_THESE if refused else self.classes[best],
                    "probability": row[best],
                    **({} if score is None else {"none": score}),
                    "all": dict(zip(self.classes, row, strict=True)),
                }
            )
        return rows

    def _table(self, width: int) -> Table:
        """Return the table for a terminal of that width; wrong predictions are marked."""
        lines = [[self.what, "label", "class", "probability", ""]]
        for row in self._rows():
            label = row.get("label", row["class"])
            mark = "" if label == row["class"] else "wrong"
            lines.append(
                [
                    " ".join(row[self.what].split()),
                    label,
                    row["class"],
                    f"{100 * row['probability']:.1f} %",
                    mark,
                ]
            )
        if self.labels is None:
            lines = [[image, answer, probability] for image, _, answer, probability, _ in lines]
        elif not any(line[-1] for line in lines):  # no prediction is wrong
            lines = [line[:-1] for line in lines]
        others = [min(LONGEST_NAME, max(map(len, column))) for column in list(zip(*lines, strict=True))[1:]]
        room = width - sum(others) - 3 * len(lines[0]) - 1  # borders
        head, *rest = lines
        table = Table(head, left_aligned=head.index("probability"))
        for name, (_, *texts) in zip(shortened([line[0] for line in rest], room), rest, strict=True):
            table.add_row(name, *(Cell(text, bold="wrong" in texts) for text in texts))
        return table


def shortened(names: Sequence[str], width: int) -> Sequence[str]:
    """Return the ends of the names, which tell files apart; whole names if the ends do not."""
    kept = max(width, SHORTEST_NAME) - len(LEFT_OUT)
    ends = [name if len(name) <= kept + len(LEFT_OUT) else LEFT_OUT + name[-kept:] for name in names]
    return ends if len(set(ends)) == len(set(names)) else names
