"""Join trainings of which only a result's folder is left: from another machine, or from deleted runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from firststep.errors import FirststepError
from firststep.paper.describe import describe_data, describe_scale, describe_stand_in, describe_tests
from firststep.paper.experiment_result import ExperimentResult, assemble
from firststep.paper.measurements import seed_columns, tidy
from firststep.paper.record import JoinedResult, Provenance, ResultRecord
from firststep.paper.stored import SavedResult, read_result, read_trainings

SAME: dict[str, Callable[[ResultRecord], str]] = {
    "scale": lambda record: describe_scale(record.scale),
    "data": lambda record: describe_stand_in(record.stand_in),
}
"""What results must agree in → how a message shows it."""
SAME_RUNS: dict[str, Callable[[Provenance], str]] = {
    "data fingerprint": lambda made: describe_data(made.data),
    "test": lambda made: describe_tests(made.tests),
    "initial weights": lambda made: "; ".join(made.initial_weights),
}
"""The same for what is known only of results that have runs."""


def with_saved(result: ExperimentResult, folders: Sequence[Path]) -> ExperimentResult:
    """Add the trainings that these results' folders have and the result lacks.

    Gains are computed per training, so the numbers of a training suffice. A result's folder has no training
    log, so curves of figures show the trainings here only.

    Args:
        result: of the runs here; may be empty.
        folders: of results of the same experiment. If two have the same training, the first counts.

    Examples:
        >>> from firststep.paper import collect_result, with_saved, write_result
        >>> folder = write_result(result, Path("results"))
        >>> elsewhere = collect_result(result.experiment, result.settings, Path("no-runs-here"))
        >>> elsewhere.exists, with_saved(elsewhere, [folder]).exists
        (False, True)
    """
    seeds = result.record.seeds
    by_seed, joined, made = result.by_seed, list(result.record.joined), result.record.provenance
    for folder in folders:
        saved = read_result(folder)
        _require_same(result.record, made, saved)
        frame = read_trainings(saved)
        known = _trainings(by_seed)
        new = frame[[pair not in known and pair[1] in seeds for pair in _pairs(frame)]]
        if new.empty:
            asked = ", ".join(map(str, seeds))
            raise FirststepError(f"{folder} adds nothing: it has no training of seed {asked} that is new")
        by_seed = tidy([*by_seed.to_dict("records"), *new.to_dict("records")], seed_columns())
        there = saved.record.provenance
        made = made or (there and _without_runs(there))
        joined.append(_joined(saved, new))
    ordered = _in_order(by_seed, result)
    return assemble(result.experiment, result.settings, ordered, result.histories, made, joined)


def _require_same(here: ResultRecord, made: Provenance | None, saved: SavedResult) -> None:
    there = saved.record
    if there.experiment != here.experiment:
        raise FirststepError(f"{saved.folder} holds a result of {there.experiment}, not of {here.experiment}")
    shown = {name: (show(here), show(there)) for name, show in SAME.items()}
    if made is not None and there.provenance is not None:
        shown |= {name: (show(made), show(there.provenance)) for name, show in SAME_RUNS.items()}
    for name, (ours, theirs) in shown.items():
        if ours != theirs:
            raise FirststepError(f"{saved.folder} has another {name}: {theirs}; here it is: {ours}")


def _without_runs(made: Provenance) -> Provenance:
    """Return what holds for all trainings of the experiment; the rest is about runs elsewhere."""
    shared = {name: value for name, value in made.config.items() if name != "seed"}
    return replace(made, code=[], torch=[], hardware=[], runs=[], training_seconds=0.0, config=shared)


def _pairs(frame: pd.DataFrame) -> list[tuple[str, int]]:
    return list(zip(frame["row"], frame["seed"], strict=True))


def _trainings(frame: pd.DataFrame) -> set[tuple[str, int]]:
    return set(_pairs(frame))


def _in_order(by_seed: pd.DataFrame, result: ExperimentResult) -> pd.DataFrame:
    """Sort as a single run of all trainings would: by the experiment's rows, then by seed."""
    labels = [row.label for row in result.settings.rows(result.experiment)]
    places = {label: place for place, label in enumerate(labels)}
    order = by_seed.assign(place=by_seed["row"].map(places)).sort_values(["place", "seed"], kind="stable")
    return order.drop(columns="place").reset_index(drop=True)


def _joined(saved: SavedResult, new: pd.DataFrame) -> JoinedResult:
    made = saved.record.provenance
    return JoinedResult(
        folder=f"{saved.record.experiment}/{saved.folder.name}",
        seeds=sorted(int(seed) for seed in new["seed"].unique()),
        code=[] if made is None else made.code,
        torch=[] if made is None else made.torch,
        hardware=[] if made is None else made.hardware,
    )
