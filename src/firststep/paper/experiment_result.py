"""The result of an experiment: its numbers, and all that a reader needs to judge or repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from firststep.evaluation import Evaluation
from firststep.paper.comparison_table import beside_paper, build_table
from firststep.paper.experiment import Experiment, Row
from firststep.paper.measurements import MeasuredRow, accuracy_frame, history_frame, read_row, seed_frame
from firststep.paper.settings import ExperimentSettings
from firststep.training import Run, RunRecord, training_time
from firststep.utils.table import Table

NOTHING = "nothing has been run yet"
PRIVATE = ("data_path", "cache", "init")
"""Settings that name folders of somebody's machine."""


@dataclass(frozen=True)
class ExperimentResult:
    """What came out of an experiment: one tidy frame of accuracies, and the table made from it.

    Examples:
        >>> from firststep.paper import ExperimentResult
        >>> isinstance(result, ExperimentResult), result.table.columns[0]
        (True, 'row')
    """

    experiment: Experiment
    settings: ExperimentSettings
    accuracies: pd.DataFrame
    """Ours and the paper's, tidy (:func:`firststep.paper.measurements.accuracy_frame`): means over seeds."""
    by_seed: pd.DataFrame
    """Ours, every training by itself (:func:`firststep.paper.measurements.seed_frame`)."""
    histories: pd.DataFrame
    """What the runs logged while they trained."""
    cells: pd.DataFrame
    """Ours beside the paper's (:func:`firststep.paper.comparison_table.beside_paper`)."""
    table: Table
    facts: dict[str, str]
    """How it was made: command, scale, data, seeds, code, hardware, time."""

    @property
    def exists(self) -> bool:
        """Whether anything of it was run here."""
        return bool((self.accuracies["source"] == "ours").any()) or bool(len(self.histories))


def collect_result(experiment: Experiment, settings: ExperimentSettings, runs: Path) -> ExperimentResult:
    """What exists of an experiment in the folder of the runs.

    Examples:
        >>> from firststep.paper import collect_result
        >>> collected = collect_result(result.experiment, result.settings, Path("runs"))
        >>> collected.table.columns == result.table.columns
        True
    """
    rows = settings.rows(experiment)
    measured = [read_row(row, settings.trainings(row), runs) for row in rows]
    by_seed = seed_frame(measured, _bases(experiment, rows))
    return assemble(
        experiment, settings, by_seed, history_frame(measured), _facts(experiment, settings, measured)
    )


def assemble(
    experiment: Experiment,
    settings: ExperimentSettings,
    by_seed: pd.DataFrame,
    histories: pd.DataFrame,
    facts: dict[str, str],
) -> ExperimentResult:
    """Means, table and all that follows from every training by itself."""
    rows = settings.rows(experiment)
    seeds = max(1, len(settings.seeds))
    accuracies = accuracy_frame(by_seed, experiment.paper, _bases(experiment, rows), seeds)
    cells = beside_paper(accuracies)
    table = build_table(experiment, rows, cells, seeds)
    return ExperimentResult(experiment, settings, accuracies, by_seed, histories, cells, table, facts)


def _bases(experiment: Experiment, rows: Iterable[Row]) -> dict[str, str]:
    """Label of a row → label of the row that its gain is taken over."""
    return {row.label: row.over for row in (*experiment.rows, *rows) if row.over is not None}


def _facts(
    experiment: Experiment, settings: ExperimentSettings, measured: Sequence[MeasuredRow]
) -> dict[str, str]:
    trainings = [training for each in measured for training in each.trainings]
    evaluations = [evaluation for training in trainings for evaluation in training.evaluations]
    runs = {training.run.folder: training.run for training in trainings if training.run is not None}
    records = [run.record for run in runs.values()]
    tested = {each.row.label for each in measured if any(t.evaluations for t in each.trainings)}
    facts = {
        "command": shlex.join(["firststep", "paper", "run", experiment.name, *settings.flags()]),
        "scale": settings.scale.describe(),
        **counts(settings, len(measured), len(tested), sum(bool(t.evaluations) for t in trainings)),
    }
    if settings.substitution(experiment):
        facts["data"] = settings.substitution(experiment)
    if not records:
        return facts | {"runs": NOTHING}
    facts |= {
        "data fingerprint": _distinct(f"{r.config.data} {r.data_fingerprint}" for r in records),
        **_seeds(settings.seeds, records),
        "test": _distinct(map(_test, evaluations)),
        "code": _distinct(map(_code, records)),
        **_initial_weights(records),
        "torch": _distinct(r.torch for r in records),
        "hardware": _distinct(r.machine for r in records),
        "training time": _times(list(runs.values())),
        "settings": _common_settings([r.config.to_json() for r in records]),
    }
    return facts


def counts(settings: ExperimentSettings, rows: int, tested: int, trainings: int) -> dict[str, str]:
    """How much there is of an experiment of so many rows."""
    facts = {"rows": f"{tested} of {rows} here have results"}
    seeds = len(settings.seeds)
    return facts | ({"trainings": f"{trainings} of {rows * seeds} have results"} if seeds > 1 else {})


def _seeds(asked: Sequence[int], records: Sequence[RunRecord]) -> dict[str, str]:
    if len(asked) > 1:
        listed = ", ".join(map(str, asked))
        return {"training seeds": f"{len(asked)} seeds: {listed}; intervals over trainings (Student t)"}
    one = "(one training for each row: intervals are over test episodes, not over trainings)"
    return {"training seed": f"{_distinct(r.config.seed for r in records)} {one}"}


def _initial_weights(records: Sequence[RunRecord]) -> dict[str, str]:
    digests = [record.init_digest for record in records if record.init_digest is not None]
    return {"initial weights": f"digest {_distinct(digests)}"} if digests else {}


def _distinct(values: Iterable[Any]) -> str:
    return "; ".join(dict.fromkeys(map(str, values)))


def _test(evaluation: Evaluation) -> str:
    s = evaluation.settings
    return f"{s['episodes']} {s['split']} episodes, seed {s['seed']}, {s['queries']} queries a class"


def _code(record: RunRecord) -> str:
    return f"firststep {record.firststep}" + (f", commit {record.commit}" if record.commit else "")


def _times(runs: Sequence[Run]) -> str:
    times = {run.name: training_time(run.folder) for run in runs}
    known = {name: time for name, time in times.items() if time is not None}
    total = sum(time.seconds for time in known.values())
    each = "; ".join(f"{name} {time}" for name, time in known.items())
    return f"{total:.0f} s in all for {len(known)} of {len(runs)} runs: {each}"


def _common_settings(configs: Sequence[dict[str, Any]]) -> str:
    """What all runs have in common; the rows say the rest."""
    names = [name for name in configs[0] if name not in PRIVATE]
    common = {name: configs[0][name] for name in names if len({str(c.get(name)) for c in configs}) == 1}
    rates = sorted({str(c["rate"]) for c in configs})
    differing = [] if "rate" in common else [f"rate by the number of features: {', '.join(rates)}"]
    return ", ".join([*(f"{name}={value}" for name, value in common.items()), *differing])
