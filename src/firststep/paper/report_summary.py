"""What exists of every experiment, in one table: for the report's page, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firststep.paper.budget import Budget, read_budget
from firststep.paper.coverage import Coverage, read_coverage
from firststep.paper.experiment import Experiment
from firststep.paper.experiments import EXPERIMENTS
from firststep.paper.output import SavedResult, read_results
from firststep.utils.table import MISSING, Table

NOT_RUN = "not run here"
NAMED = 6
"""Missing rows that are named; of more the number is said."""
COLUMNS = [
    *("experiment", "the paper's data", "run here on", "result", "network and images", "updates × tasks"),
    *("seeds", "test", "training", "rows", "cells", "of the paper's cells"),
]


@dataclass(frozen=True)
class ReportEntry:
    """A result with what the report says about it."""

    result: SavedResult
    coverage: Coverage
    budget: Budget

    @property
    def anchor(self) -> str:
        return f"{self.result.experiment}-{self.result.folder.name}"

    @property
    def seeds(self) -> str:
        seeds = self.result.seeds
        listed = ", ".join(map(str, seeds))
        incomplete = self.coverage.incomplete
        more = f", {incomplete} cells incomplete" if incomplete else ""
        return f"{len(seeds)} ({listed}){more}"

    @property
    def trainings(self) -> str:
        """The seeds in words."""
        several = len(self.result.seeds) > 1
        over = "intervals over trainings" if several else "intervals over test episodes"
        return f"training seed{'s' * several} {self.seeds}, {over}"

    @property
    def gaps(self) -> list[str]:
        """What is missing in its table, without the rows that the experiment itself is said to lack."""
        name = self.result.experiment
        labels = {row.label for row in EXPERIMENTS[name]().rows} if name in EXPERIMENTS else set()
        return [gap for gap in self.coverage.missing() if gap not in labels]

    @property
    def rows(self) -> str:
        """Those with results, of those that the experiment has as it is defined now."""
        experiment = EXPERIMENTS[self.result.experiment]() if self.result.experiment in EXPERIMENTS else None
        total = max(len(self.coverage.rows), 0 if experiment is None else len(experiment.rows))
        return f"{len(self.coverage.run)} of {total}"

    @property
    def beside(self) -> str:
        """Of the cells that the paper prints for the experiment, how many have ours beside them."""
        printed = self.coverage.printed
        if self.result.experiment in EXPERIMENTS:
            printed = printed_cells(EXPERIMENTS[self.result.experiment]())
        return f"{min(self.coverage.beside, printed)} of {printed}" if printed else MISSING


def printed_cells(experiment: Experiment) -> int:
    """Cells of the experiment's rows and columns that the paper prints."""
    labels = {row.label for row in experiment.rows}
    return sum(
        cell["row"] in labels
        and (experiment.columns is None or (cell["step"], cell["rate_multiplier"]) in experiment.columns)
        for cell in experiment.paper.to_dict("records")
    )


def read_entries(folder: Path) -> dict[str, list[ReportEntry]]:
    """Experiment → its results below ``folder``: the paper's in its order, then ours, then unknown ones."""
    found: dict[str, list[ReportEntry]] = {name: [] for name in EXPERIMENTS}
    for result in read_results(folder):
        if result.exists:
            entry = ReportEntry(result, read_coverage(result.table), read_budget(result.facts))
            found.setdefault(result.experiment, []).append(entry)
    return found


def summary_table(entries: dict[str, list[ReportEntry]]) -> Table:
    """A line for each result, and for each experiment without one."""
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
        *(b.data, entry.result.folder.name, network, training),
        *(entry.seeds, b.test, b.time, entry.rows, str(entry.coverage.ours), entry.beside),
    ]


def count_line(entries: dict[str, list[ReportEntry]]) -> str:
    """How much there is, in a sentence or two."""
    results = [entry for own in entries.values() for entry in own]
    absent = [name for name, own in entries.items() if not own]
    several = sum(len(entry.result.seeds) > 1 for entry in results)
    return (
        f"{len(results)} results of {len(entries) - len(absent)} of {len(entries)} experiments; {several} of "
        f"them with several training seeds. {NOT_RUN.capitalize()}: {', '.join(absent) or 'none'}."
    )


def markdown_summary(folder: Path) -> str:
    """The summary of the report as Markdown.

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
    """Rows of the experiment as it is defined now that no result has; none where there is no result."""
    if not own or name not in EXPERIMENTS:
        return []
    run = {row.label for entry in own for row in entry.coverage.run}
    return [row.label for row in EXPERIMENTS[name]().rows if row.label not in run]


def named(gaps: Sequence[str]) -> str:
    """The first few by name, and how many more."""
    listed = "; ".join(gaps[:NAMED])
    return f"{listed}; and {len(gaps) - NAMED} more" if len(gaps) > NAMED else listed
