"""The result of an experiment: its table and frames, and all that a reader needs to judge or repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from firststep.evaluation.evaluate import Evaluation
from firststep.paper import frames
from firststep.paper.experiment import Experiment, Row
from firststep.paper.plan import run_name
from firststep.paper.setting import Setting
from firststep.paper.table import Table, build_table
from firststep.training import Run
from firststep.training.sessions import training_time

NOTHING = "nothing has been run yet"
PER_ROW = ("backbone", "method", "conditioning", "subset", "ways", "shots", "filters", "rate")
PRIVATE = ("data_path", "cache")
"""Settings that name folders of somebody's machine."""


@dataclass(frozen=True)
class Result:
    experiment: Experiment
    setting: Setting
    rows: tuple[Row, ...]
    accuracies: pd.DataFrame
    histories: pd.DataFrame
    gains: pd.DataFrame
    table: Table
    facts: dict[str, str]
    """How it was made: command, scale, data, seeds, code, hardware, time."""

    @property
    def stem(self) -> str:
        """Of its files."""
        return f"{self.experiment.name}-{self.setting.slug}"

    @property
    def exists(self) -> bool:
        """Whether anything of it was run here."""
        return bool((self.accuracies["source"] == "ours").any()) or bool(len(self.histories))


def gather(experiment: Experiment, setting: Setting, runs: Path) -> Result:
    """What exists of an experiment."""
    rows = setting.rows(experiment)
    accuracies = frames.accuracies(rows, runs, experiment.paper)
    gains = frames.gains(rows, runs)
    return Result(
        experiment,
        setting,
        rows,
        accuracies,
        frames.histories(rows, runs),
        gains,
        build_table(experiment, rows, accuracies, gains),
        _facts(experiment, setting, rows, runs),
    )


def _facts(experiment: Experiment, setting: Setting, rows: Sequence[Row], runs: Path) -> dict[str, str]:
    tested = [(row, evaluation) for row in rows for evaluation in frames.evaluations(row, runs)]
    begun = {run_name(row.config): Run(runs / run_name(row.config)) for row in rows}
    begun = {name: run for name, run in begun.items() if run.record_path.is_file()}
    records = [run.record for run in begun.values()]
    facts = {
        "command": shlex.join(["firststep", "paper", "run", experiment.name, *setting.flags()]),
        "scale": setting.scale.describe(),
        "rows": f"{len({row.label for row, _ in tested})} of {len(rows)} here have results",
    }
    if setting.replaced(experiment):
        facts["data"] = setting.replaced(experiment)
    if not records:
        return facts | {"runs": NOTHING}
    facts |= {
        "data fingerprint": _distinct(f"{r['config']['data']} {r['data_fingerprint']}" for r in records),
        "training seed": _distinct(r["config"]["seed"] for r in records)
        + " (one training for each row: intervals are over test episodes, not over trainings)",
        "test": _distinct(_test(evaluation) for _, evaluation in tested),
        "code": _distinct(_code(r) for r in records),
        "torch": _distinct(r["torch"] for r in records),
        "hardware": _distinct(r["machine"] for r in records),
        "training time": _times(begun),
        "settings": _settings([r["config"] for r in records]),
    }
    return facts


def _distinct(values: Iterable[Any]) -> str:
    return "; ".join(dict.fromkeys(map(str, values)))


def _test(evaluation: Evaluation) -> str:
    s = evaluation.settings
    return f"{s['episodes']} {s['split']} episodes, seed {s['seed']}, {s['queries']} queries a class"


def _code(record: dict[str, Any]) -> str:
    commit = record.get("commit")
    return f"firststep {record['firststep']}" + (f", commit {commit}" if commit else "")


def _times(runs: dict[str, Run]) -> str:
    times = {name: training_time(run.folder) for name, run in runs.items()}
    known = {name: time for name, time in times.items() if time is not None}
    total = sum(time.seconds for time in known.values())
    each = "; ".join(f"{name} {time}" for name, time in known.items())
    return f"{total:.0f} s in all for {len(known)} of {len(runs)} runs: {each}"


def _settings(configs: Sequence[dict[str, Any]]) -> str:
    """What all runs have in common; the rows say the rest."""
    names = [name for name in configs[0] if name not in PRIVATE]
    common = {name: configs[0][name] for name in names if len({str(c.get(name)) for c in configs}) == 1}
    rates = sorted({str(c["rate"]) for c in configs})
    differing = [] if "rate" in common else [f"rate by the number of features: {', '.join(rates)}"]
    return ", ".join([*(f"{name}={value}" for name, value in common.items()), *differing])
