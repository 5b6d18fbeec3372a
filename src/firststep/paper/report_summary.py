"""Summarise in one table what was run of every experiment: for the report's page, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firststep.paper.budget import Budget, budget_of
from firststep.paper.coverage import Coverage, coverage_of
from firststep.paper.experiment import Experiment
from firststep.paper.experiments import EXPERIMENTS
from firststep.paper.record import ResultRecord
from firststep.paper.stored import SavedResult, read_results
from firststep.utils.table import MISSING, Table

NOT_RUN = "not run here"
NAMED = 6
"""Number of missing rows that are named; the others are counted."""
COLUMNS = [
    *("experiment", "the paper's data", "run here on", "result", "network and images", "updates × tasks"),
    *("seeds", "test", "training", "rows", "cells", "of the paper's cells"),
]


@dataclass(frozen=True)
class ReportEntry:
    """A result with what the report says about it."""

    saved: SavedResult
    coverage: Coverage
    budget: Budget
    experiment: Experiment | None
    """The experiment as it is defined now; None if it is not registered."""

    @property
    def record(self) -> ResultRecord:
        """The record of the result."""
        return self.saved.record

    @property
    def anchor(self) -> str:
        """The result's anchor on the page."""
        return f"{self.record.experiment}-{self.saved.folder.name}"

    @property
    def seeds(self) -> str:
        """Number and list of the seeds, with the number of incomplete cells."""
        seeds = self.record.seeds
        listed = ", ".join(map(str, seeds))
        incomplete = self.coverage.incomplete
        more = f", {incomplete} cells incomplete" if incomplete else ""
        return f"{len(seeds)} ({listed}){more}"

    @property
    def trainings(self) -> str:
        """The seeds, and what intervals are over."""
        several = len(self.record.seeds) > 1
        over = "intervals over trainings" if several else "intervals over test episodes"
        return f"training seed{'s' * several} {self.seeds}, {over}"

    @property
    def gaps(self) -> list[str]:
        """What its table lacks, without the rows that no result of the experiment has."""
        labels = {row.label for row in self.experiment.rows} if self.experiment is not None else set()
        return [gap for gap in self.coverage.missing() if gap not in labels]

    @property
    def rows(self) -> str:
        """Number of rows with results, of those that the experiment has now."""
        defined = 0 if self.experiment is None else len(self.experiment.rows)
        return f"{len(self.coverage.run)} of {max(len(self.coverage.labels), defined)}"

    @property
    def beside(self) -> str:
        """Number of the paper's cells that have ours beside them, of those that it prints."""
        printed = self.coverage.printed_cells if self.experiment is None else printed_cells(self.experiment)
        return f"{min(self.coverage.beside, printed)} of {printed}" if printed else MISSING


def printed_cells(experiment: Experiment) -> int:
    """Return the number of cells that the paper prints for the experiment's rows and columns."""
    labels = {row.label for row in experiment.rows}
    return sum(
        cell["row"] in labels
        and (experiment.columns is None or (cell["step"], cell["rate_multiplier"]) in experiment.columns)
        for cell in experiment.paper.to_dict("records")
    )


def read_entries(folder: Path) -> dict[str, list[ReportEntry]]:
    """Return experiment → its results below ``folder``: the paper's in its order, then ours, then others."""
    found: dict[str, list[ReportEntry]] = {name: [] for name in EXPERIMENTS}
    defined = {name: make() for name, make in EXPERIMENTS.items()}
    for saved in read_results(folder):
        record = saved.record
        if record.exists:
            coverage = coverage_of(record.table, saved.cells, len(record.seeds))
            budget = budget_of(record, saved.cells)
            entry = ReportEntry(saved, coverage, budget, defined.get(record.experiment))
            found.setdefault(record.experiment, []).append(entry)
    return found


def summary_table(entries: dict[str, list[ReportEntry]]) -> Table:
    """Return a line per result, and one per experiment without a result."""
    table = Table(COLUMNS, left_aligned=len(COLUMNS) - 3)
    for name, own in entries.items():
        datasets = ", ".join(EXPERIMENTS[name]().datasets) if name in EXPERIMENTS else ""
        table.add_section()
        if not own:
            table.add_row(name, datasets, NOT_RUN)
        for entry in own:
            table.add_row(name, datasets, *_cells(entry))
    return table


def _cells(entry: ReportEntry) -> list[str]:
    b = entry.budget
    network = ", ".join(part for part in (b.networks, b.images) if part)
    training = b.training.removesuffix(" tasks").replace(" updates", "")
    return [
        *(b.data, entry.saved.folder.name, network, training),
        *(entry.seeds, b.test, b.time, entry.rows, str(entry.coverage.cells), entry.beside),
    ]


def count_line(entries: dict[str, list[ReportEntry]]) -> str:
    """Return how much was run, in a sentence or two."""
    results = [entry for own in entries.values() for entry in own]
    absent = [name for name, own in entries.items() if not own]
    several = sum(len(entry.record.seeds) > 1 for entry in results)
    return (
        f"{len(results)} results of {len(entries) - len(absent)} of {len(entries)} experiments; {several} of "
        f"them with several training seeds. {NOT_RUN.capitalize()}: {', '.join(absent) or 'none'}."
    )


def markdown_summary(folder: Path) -> str:
    """Return the summary of the report as Markdown.

    Examples:
        >>> from firststep.paper import markdown_summary, write_result
        >>> _ = write_result(result, Path("results"))
        >>> "one-row" in markdown_summary(Path("results"))
        True
    """
    entries = read_entries(folder)
    lines = ["# The paper's tables and figures, run here", "", count_line(entries), ""]
    lines.append(summary_table(entries).to_markdown())
    for name, own in entries.items():
        gaps = {name: absent_rows(name, own), **{entry.anchor: entry.gaps for entry in own}}
        lines += [f"- {where}, {NOT_RUN}: {named(missing)}." for where, missing in gaps.items() if missing]
    return "\n".join(lines).rstrip() + "\n"


def absent_rows(name: str, own: Sequence[ReportEntry]) -> list[str]:
    """Return the rows of the experiment that no result has; none if there is no result."""
    if not own or name not in EXPERIMENTS:
        return []
    run = {label for entry in own for label in entry.coverage.run}
    return [row.label for row in EXPERIMENTS[name]().rows if row.label not in run]


def named(gaps: Sequence[str]) -> str:
    """Return the first few by name, and the number of the others."""
    listed = "; ".join(gaps[:NAMED])
    return f"{listed}; and {len(gaps) - NAMED} more" if len(gaps) > NAMED else listed
