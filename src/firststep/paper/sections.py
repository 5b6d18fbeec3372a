"""The results of every experiment, with what each lacks: what the report is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from firststep.paper.comparison_table import heading
from firststep.paper.experiment import Experiment
from firststep.paper.experiments import EXPERIMENTS
from firststep.paper.record import Column
from firststep.paper.stored import SavedResult, read_results


@dataclass(frozen=True)
class Section:
    """An experiment of the report with its results."""

    name: str
    experiment: Experiment | None
    """The experiment as it is defined now; None if it is not registered."""
    results: list[SavedResult]

    @property
    def labels(self) -> list[str]:
        """Rows that the experiment has now."""
        return [] if self.experiment is None else [row.label for row in self.experiment.rows]

    @property
    def absent(self) -> list[str]:
        """Rows of the experiment that no result has."""
        run = {label for saved in self.results for label in rows_run(saved)}
        return [label for label in self.labels if label not in run]

    def gaps(self, saved: SavedResult) -> list[str]:
        """Return what a result lacks beside :attr:`absent`: rows, and steps that the paper prints."""
        run, cells = rows_run(saved), saved.cells
        absent = [label for label in rows_of(saved) if label not in (*run, *self.labels)]
        printed = cells["accuracy"].isna() & cells["paper_accuracy"].notna() & cells["row"].isin(run)
        for row, group in cells[printed].groupby("row", sort=False):
            columns = {Column(*key) for key in zip(group["step"], group["rate_multiplier"], strict=True)}
            if lacking := sorted(columns & set(saved.record.table.columns)):
                absent.append(f"{row} ({', '.join(map(heading, lacking))})")
        return absent


def rows_of(saved: SavedResult) -> list[str]:
    """Return every row of a result's table."""
    return list(dict.fromkeys([*(row.label for row in saved.record.table.rows), *saved.cells["row"]]))


def rows_run(saved: SavedResult) -> list[str]:
    """Return the rows with an accuracy of ours."""
    run = set(saved.cells.loc[saved.cells["accuracy"].notna(), "row"])
    return [label for label in rows_of(saved) if label in run]


def read_sections(folder: Path) -> list[Section]:
    """Read the results below ``folder``: the paper's experiments in its order, then ours, then others."""
    found: dict[str, list[SavedResult]] = {name: [] for name in EXPERIMENTS}
    for saved in read_results(folder):
        if saved.record.exists:
            found.setdefault(saved.record.experiment, []).append(saved)
    return [
        Section(name, EXPERIMENTS[name]() if name in EXPERIMENTS else None, own)
        for name, own in found.items()
    ]
