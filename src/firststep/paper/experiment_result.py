"""The result of an experiment: its numbers, and what a reader needs to judge or repeat it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from firststep.paper.comparison_table import beside_paper, build_table, layout_of
from firststep.paper.experiment import Experiment
from firststep.paper.measurements import accuracy_frame, history_frame, read_row, seed_frame
from firststep.paper.provenance import collect_provenance
from firststep.paper.record import ResultRecord
from firststep.paper.settings import ExperimentSettings
from firststep.utils.table import Table

DEFAULT_SEEDS = (0,)


@dataclass(frozen=True)
class ExperimentResult:
    """The numbers of an experiment as tidy frames, and the record of how they were made.

    Examples:
        >>> from firststep.paper import ExperimentResult
        >>> isinstance(result, ExperimentResult), result.table.columns[0]
        (True, 'row')
        >>> result.record.scale.name, result.record.provenance.config["updates"]
        ('smoke', 2)
    """

    experiment: Experiment
    settings: ExperimentSettings
    record: ResultRecord
    """Command, scale, seeds, data, code, hardware, time and settings, as ``result.json`` holds them."""
    accuracies: pd.DataFrame
    """Ours and the paper's, tidy (:func:`firststep.paper.measurements.accuracy_frame`): means over seeds."""
    by_seed: pd.DataFrame
    """Ours, one line per training (:func:`firststep.paper.measurements.seed_frame`)."""
    histories: pd.DataFrame
    """Logs of the runs' training."""
    cells: pd.DataFrame
    """Ours beside the paper's (:func:`firststep.paper.comparison_table.beside_paper`)."""

    @property
    def table(self) -> Table:
        """The table that people read."""
        return build_table(self.record.table, self.cells, len(self.record.seeds), title=self.experiment.title)

    @property
    def exists(self) -> bool:
        """Whether anything of it was run here."""
        return self.record.exists


def collect_result(experiment: Experiment, settings: ExperimentSettings, runs: Path) -> ExperimentResult:
    """Collect the results of an experiment from the folder of the runs, as far as they exist.

    Examples:
        >>> from firststep.paper import collect_result
        >>> collected = collect_result(result.experiment, result.settings, Path("runs"))
        >>> collected.table.columns == result.table.columns
        True
    """
    rows = settings.rows(experiment)
    seeds = list(settings.seeds or DEFAULT_SEEDS)
    over = {row.label: row.over for row in (*experiment.rows, *rows) if row.over is not None}
    measured = [read_row(row, settings.trainings(row), runs) for row in rows]
    by_seed, histories = seed_frame(measured, over), history_frame(measured)
    accuracies = accuracy_frame(by_seed, experiment.paper, over, len(seeds))
    cells = beside_paper(accuracies)
    record = ResultRecord(
        experiment=experiment.name,
        title=experiment.title,
        note=experiment.note,
        command=["firststep", "paper", "run", experiment.name, *settings.flags()],
        scale=settings.scale.record(),
        seeds=seeds,
        stand_in=settings.stand_in(experiment),
        table=layout_of(experiment, rows, cells),
        figure=experiment.figure is not None,
        exists=bool(len(by_seed)) or bool(len(histories)),
        provenance=collect_provenance(measured),
    )
    return ExperimentResult(experiment, settings, record, accuracies, by_seed, histories, cells)
