"""Collect how a result was made: from the experiment's settings, and from the records of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from firststep.evaluation import Evaluation
from firststep.paper.measurements import MeasuredRow
from firststep.paper.record import CodeVersion, DataVersion, Provenance, RunTime, TestEpisodes
from firststep.training import Run, RunRecord, training_time

PRIVATE = ("data_path", "cache", "init")
"""Settings that hold paths of somebody's machine."""
T = TypeVar("T")


def collect_provenance(measured: Sequence[MeasuredRow]) -> Provenance | None:
    """Return what the runs of these rows record; None if there is no run."""
    trainings = [training for each in measured for training in each.trainings]
    runs = list({t.run.folder: t.run for t in trainings if t.run is not None}.values())
    if not runs:
        return None
    records = [run.record for run in runs]
    times = [_time(run) for run in runs]
    configs = [_public_config(record) for record in records]
    names = list(configs[0])
    values = {name: distinct(config.get(name) for config in configs) for name in names}
    return Provenance(
        data=distinct(DataVersion(r.config.data, r.data_fingerprint) for r in records),
        tests=distinct(_episodes(e) for training in trainings for e in training.evaluations),
        code=distinct(CodeVersion(r.firststep, r.commit) for r in records),
        initial_weights=distinct(r.init_digest for r in records if r.init_digest is not None),
        torch=distinct(r.torch for r in records),
        hardware=distinct(r.machine for r in records),
        runs=times,
        training_seconds=sum(time.seconds for time in times if time.seconds is not None),
        config={name: found[0] for name, found in values.items() if len(found) == 1},
        varying={name: found for name, found in values.items() if len(found) > 1},
    )


def distinct(values: Iterable[T]) -> list[T]:
    """Return each value once, in the order of its first appearance."""
    found: list[T] = []
    for value in values:
        if not any(value == other and type(value) is type(other) for other in found):
            found.append(value)
    return found


def _public_config(record: RunRecord) -> dict[str, Any]:
    return {name: value for name, value in record.config.to_json().items() if name not in PRIVATE}


def _episodes(evaluation: Evaluation) -> TestEpisodes:
    settings = evaluation.settings
    names = ("episodes", "split", "seed", "queries")
    return TestEpisodes(**{name: getattr(settings, name) for name in names})


def _time(run: Run) -> RunTime:
    time = training_time(run.folder)
    if time is None:
        return RunTime(name=run.name, seconds=None)
    return RunTime(name=run.name, seconds=time.seconds, killed=time.killed)
