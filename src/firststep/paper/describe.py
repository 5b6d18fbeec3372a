"""Render how a result was made: short texts for pages, the terminal and the report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

import pandas as pd

from firststep.paper.record import (
    CodeVersion,
    DataVersion,
    JoinedResult,
    Provenance,
    ResultRecord,
    RunTime,
    ScaleRecord,
    StandIn,
    TestEpisodes,
)
from firststep.training import TrainingTime

NOTHING = "nothing has been run yet"


def how_it_was_made(record: ResultRecord, cells: pd.DataFrame) -> dict[str, str]:
    """Return name → text: command, scale, data, seeds, code, hardware, time and settings.

    Args:
        record: of the result.
        cells: its numbers, from which the rows with results are counted.
    """
    lines = {"command": shlex.join(record.command)}
    if record.definition:
        lines["experiment"] = record.definition
    lines["scale"] = describe_scale(record.scale)
    lines |= _counts(record, cells)
    if record.stand_in is not None:
        lines["data"] = describe_stand_in(record.stand_in)
    if record.provenance is not None:
        lines |= _provenance(record.provenance, record.seeds)
    elif not record.exists:
        lines["runs"] = NOTHING
    if record.joined:
        lines["trainings from other results"] = "; ".join(map(_joined, record.joined))
    return lines


def _counts(record: ResultRecord, cells: pd.DataFrame) -> dict[str, str]:
    trained = cells[cells["accuracy"].notna()].groupby("row")["seeds"].max()
    planned = record.table.planned
    lines = {"rows": f"{len(trained)} of {planned} here have results"}
    if len(record.seeds) > 1:
        lines["trainings"] = f"{trained.sum()} of {planned * len(record.seeds)} have results"
    return lines


def _provenance(made: Provenance, seeds: list[int]) -> dict[str, str]:
    if len(seeds) > 1:
        listed = ", ".join(map(str, seeds))
        trained = {"training seeds": f"{len(seeds)} seeds: {listed}; intervals over trainings (Student t)"}
    else:
        own = [made.config["seed"]] if "seed" in made.config else made.varying.get("seed", seeds)
        about = "one training for each row: intervals are over test episodes, not over trainings"
        trained = {"training seed": f"{_listed(own)} ({about})"}
    lines = {
        "data fingerprint": describe_data(made.data),
        **trained,
        "test": describe_tests(made.tests),
        "code": _listed(map(_code, made.code)),
        "initial weights": f"digest {_listed(made.initial_weights)}" if made.initial_weights else "",
        "torch": _listed(made.torch),
        "hardware": _listed(made.hardware),
        "training time": _times(made) if made.runs else "",
        "settings": _settings(made),
    }
    return {name: text for name, text in lines.items() if text}


def describe_scale(scale: ScaleRecord) -> str:
    """Return the scale and everything that it changes, in one line."""
    changes = ", ".join(_change(name, value) for name, value in scale.changes.items())
    asked = ", ".join(name.replace("_", " ") for name in scale.overrides)
    return (
        scale.name
        + (f" with other {asked}" if asked else "")
        + (f" (changed from the paper's protocol: {changes})" if changes else " (the paper's protocol)")
    )


def _change(name: str, value: Any) -> str:
    return f"{name.replace('_', ' ')} {value}"


def describe_stand_in(stand_in: StandIn | None) -> str:
    """Return which data are not the experiment's own; empty if all are."""
    if stand_in is None:
        return ""
    missing = ", ".join(stand_in.missing)
    if stand_in.used is None:
        return f"Not given, hence missing: {missing}."
    if not stand_in.printed:
        return f"Run on {stand_in.used} in place of {missing}, which the experiment is about."
    return (
        f"Run on {stand_in.used} in place of {missing}, which the paper's numbers are about: compare the "
        "order and the gains, not the accuracies."
    )


def describe_data(data: Iterable[DataVersion]) -> str:
    """Return the names and fingerprints of the data."""
    return _listed(f"{each.name} {each.fingerprint}" for each in data)


def describe_tests(tests: Iterable[TestEpisodes]) -> str:
    """Return the number, split and seed of the test episodes."""
    return _listed(
        f"{test.episodes} {test.split} episodes, seed {test.seed}, {test.queries} queries a class"
        for test in tests
    )


def _code(code: CodeVersion) -> str:
    return f"firststep {code.firststep}" + (f", commit {code.commit}" if code.commit else "")


def _times(made: Provenance) -> str:
    known = [run for run in made.runs if run.seconds is not None]
    each = "; ".join(f"{run.name} {_time(run)}" for run in known)
    return f"{made.training_seconds:.0f} s in all for {len(known)} of {len(made.runs)} runs: {each}"


def _time(run: RunTime) -> str:
    return str(TrainingTime(run.seconds or 0.0, sessions=1, killed=run.killed))


def _settings(made: Provenance) -> str:
    """Return what all runs share, and the inner rates; the table's rows say in what else they differ."""
    shared = [f"{name}={value}" for name, value in made.config.items()]
    rates = sorted(map(str, made.varying.get("rate", [])))
    return ", ".join([*shared, *([f"rate by the number of features: {', '.join(rates)}"] if rates else [])])


def _joined(joined: JoinedResult) -> str:
    made = "; ".join([_listed(map(_code, joined.code)), _listed(joined.torch), _listed(joined.hardware)])
    return f"{joined.folder}, seed {', '.join(map(str, joined.seeds))} ({made})"


def _listed(values: Iterable[object]) -> str:
    return "; ".join(dict.fromkeys(map(str, values)))
