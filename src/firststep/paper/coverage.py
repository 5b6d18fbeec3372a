"""How much of an experiment's table was run here: rows and cells counted, and what is missing by name."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from firststep.paper.comparison_table import heading
from firststep.paper.measurements import CELL
from firststep.paper.record import Column, Layout


@dataclass(frozen=True)
class Coverage:
    """The numbers of a table that exist, ours and the paper's."""

    labels: list[str]
    """Every row of the table."""
    ours: dict[str, dict[Column, int]]
    """Row → columns with an accuracy of ours → number of trainings behind it."""
    printed: dict[str, set[Column]]
    """Row → columns for which the paper prints an accuracy."""
    seeds: int
    """Number of trainings per row that were asked for."""

    @property
    def run(self) -> list[str]:
        """Rows with an accuracy of ours."""
        return [label for label in self.labels if label in self.ours]

    @property
    def cells(self) -> int:
        """Number of cells with an accuracy of ours."""
        return sum(map(len, self.ours.values()))

    @property
    def incomplete(self) -> int:
        """Number of our cells for which some seeds are missing."""
        return sum(done < self.seeds for columns in self.ours.values() for done in columns.values())

    @property
    def printed_cells(self) -> int:
        """Number of cells that the paper prints."""
        return sum(map(len, self.printed.values()))

    @property
    def beside(self) -> int:
        """Number of cells that the paper prints and that have one of ours beside them."""
        return sum(len(columns & self.ours.get(label, {}).keys()) for label, columns in self.printed.items())

    def missing(self) -> list[str]:
        """Return the rows that were not run, and the printed steps that rows lack."""
        gaps = [label for label in self.labels if label not in self.ours]
        for label in self.run:
            if absent := self.printed.get(label, set()) - self.ours[label].keys():
                gaps.append(f"{label} ({', '.join(map(heading, sorted(absent)))})")
        return gaps


def coverage_of(layout: Layout, cells: pd.DataFrame, seeds: int) -> Coverage:
    """Count what exists of a table.

    Args:
        layout: rows and columns of the table.
        cells: its numbers (:func:`firststep.paper.comparison_table.beside_paper`).
        seeds: number of trainings per row that were asked for.
    """
    ours: dict[str, dict[Column, int]] = {}
    printed: dict[str, set[Column]] = {}
    for cell in cells[[*CELL, "accuracy", "paper_accuracy", "seeds"]].to_dict("records"):
        column = Column(int(cell["step"]), float(cell["rate_multiplier"]))
        if column not in layout.columns:
            continue
        if pd.notna(cell["accuracy"]):
            ours.setdefault(cell["row"], {})[column] = int(cell["seeds"])
        if pd.notna(cell["paper_accuracy"]):
            printed.setdefault(cell["row"], set()).add(column)
    labels = list(dict.fromkeys([*(row.label for row in layout.rows), *cells["row"]]))
    return Coverage(labels, ours, printed, seeds)
