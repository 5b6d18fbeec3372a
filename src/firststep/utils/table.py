"""One table model for every output: Markdown, HTML and CSV here, the terminal in ``firststep.cli``."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass, field

MISSING = "–"
"""The text of a cell without a value."""


@dataclass(frozen=True)
class Cell:
    text: str
    bold: bool = False


@dataclass
class Table:
    """Rows of text cells. Leading columns are aligned left, columns of numbers right."""

    columns: Sequence[str]
    title: str = ""
    left_aligned: int = 1
    """Number of leading columns that hold words instead of numbers."""
    rows: list[list[Cell]] = field(default_factory=list)
    sections: set[int] = field(default_factory=set)
    """Indices of the rows with a line above them, in renderers that draw lines."""

    def add_row(self, *cells: str | Cell) -> None:
        if len(cells) > len(self.columns):
            raise ValueError(f"a row of {len(cells)} cells does not fit {len(self.columns)} columns")
        row = [cell if isinstance(cell, Cell) else Cell(cell) for cell in cells]
        self.rows.append(row + [Cell("")] * (len(self.columns) - len(row)))

    def add_section(self) -> None:
        """Draw a line before the next row."""
        self.sections.add(len(self.rows))

    def to_markdown(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

        rule = "|---" * self.left_aligned + "|---:" * (len(self.columns) - self.left_aligned) + "|"
        body = [line([f"**{c.text}**" if c.bold else c.text for c in row]) for row in self.rows]
        return "\n".join([line(self.columns), rule, *body]) + "\n"

    def to_html(self) -> str:
        def cells(texts: Sequence[str], tag: str) -> str:
            aligned = [' class="text"'] * self.left_aligned + [""] * (len(texts) - self.left_aligned)
            parts = (f"<{tag}{a}>{text}</{tag}>" for a, text in zip(aligned, texts, strict=True))
            return f"<tr>{''.join(parts)}</tr>"

        head = cells([html.escape(name) for name in self.columns], "th")
        body = "\n".join(cells([_html(cell) for cell in row], "td") for row in self.rows)
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        return f"<table>{caption}<thead>{head}</thead><tbody>\n{body}\n</tbody></table>"

    def to_csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([cell.text for cell in row] for row in self.rows)
        return text.getvalue()


def _html(cell: Cell) -> str:
    text = html.escape(cell.text)
    return f"<strong>{text}</strong>" if cell.bold else text
