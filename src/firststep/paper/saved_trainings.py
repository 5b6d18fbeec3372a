"""Trainings of which only a result's folder is left: made on another machine, or in an earlier sitting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from firststep.errors import FirststepError
from firststep.paper.experiment_result import NOTHING, ExperimentResult, assemble, counts
from firststep.paper.measurements import BY_SEED, tidy
from firststep.paper.output import BY_SEED as BY_SEED_FILE
from firststep.paper.output import DEFAULT_SEEDS, NUMBERS, SavedResult, read_result

SAME = ("scale", "data", "data fingerprint", "test", "initial weights")
"""Facts in which results must agree, or they are not about the same trainings and episodes."""
TOLD = ("code", "torch", "hardware")
"""Facts in which they may differ: every training keeps its own."""


def with_saved(result: ExperimentResult, folders: Sequence[Path]) -> ExperimentResult:
    """The result with the trainings that these results' folders have and it lacks.

    Gains are those of each training by itself, so that nothing but its numbers is needed. What it logged is
    not in a result's folder: curves of figures are of the trainings here alone.

    Args:
        result: of what was run here; maybe of nothing.
        folders: of results of the same experiment. Where two have the same training, the first counts.

    Examples:
        >>> from firststep.paper import collect_result, with_saved, write_result
        >>> folder = write_result(result, Path("results"))
        >>> elsewhere = collect_result(result.experiment, result.settings, Path("no-runs-here"))
        >>> elsewhere.exists, with_saved(elsewhere, [folder]).exists
        (False, True)
    """
    seeds = result.settings.seeds or DEFAULT_SEEDS
    by_seed, facts, told = result.by_seed, dict(result.facts), []
    for folder in folders:
        saved = read_result(folder)
        _require_same(result.experiment.name, facts, saved)
        frame = _trainings(saved)
        known = _pairs(by_seed)
        is_new = [pair not in known and pair[1] in seeds for pair in _pairs_in_order(frame)]
        new = frame[is_new]
        if new.empty:
            asked = ", ".join(map(str, seeds))
            raise FirststepError(f"{folder} adds nothing: it has no training of seed {asked} that is new")
        by_seed = tidy([*by_seed.to_dict("records"), *new.to_dict("records")], BY_SEED)
        facts |= {name: saved.facts[name] for name in SAME if name in saved.facts}
        told.append(_describe(saved, new))
    facts |= _counted(result, by_seed)
    facts["trainings from other results"] = "; ".join(told)
    if facts.get("runs") == NOTHING:
        del facts["runs"]
    return assemble(result.experiment, result.settings, _in_order(by_seed, result), result.histories, facts)


def _require_same(experiment: str, facts: dict[str, str], saved: SavedResult) -> None:
    if saved.experiment != experiment:
        raise FirststepError(f"{saved.folder} holds a result of {saved.experiment}, not of {experiment}")
    for name in SAME:
        here, there = facts.get(name), saved.facts.get(name)
        if here is not None and there is not None and here != there:
            raise FirststepError(f"{saved.folder} has another {name}: {there}; here it is: {here}")


def _trainings(saved: SavedResult) -> pd.DataFrame:
    """Of several seeds every training has its lines; with one, the numbers themselves are the training's."""
    several = len(saved.seeds) > 1
    file = saved.folder / (BY_SEED_FILE if several else NUMBERS)
    try:
        frame = pd.read_csv(file, comment="#", keep_default_na=False, na_values=[""])
        if not several:
            frame = frame.rename(columns={"gain_over": "over"}).assign(seed=saved.seeds[0])
        return tidy(frame[frame["accuracy"].notna()].to_dict("records"), BY_SEED)
    except (OSError, ValueError, KeyError) as error:
        raise FirststepError(f"{file} cannot be read as the numbers of a result: {error}") from None


def _pairs_in_order(frame: pd.DataFrame) -> list[tuple[str, int]]:
    return list(zip(frame["row"], frame["seed"], strict=True))


def _pairs(frame: pd.DataFrame) -> set[tuple[str, int]]:
    return set(_pairs_in_order(frame))


def _in_order(by_seed: pd.DataFrame, result: ExperimentResult) -> pd.DataFrame:
    """As one run of all would have it: rows as the experiment has them, then seeds."""
    labels = [row.label for row in result.settings.rows(result.experiment)]
    places = {label: place for place, label in enumerate(labels)}
    order = by_seed.assign(place=by_seed["row"].map(places)).sort_values(["place", "seed"], kind="stable")
    return order.drop(columns="place").reset_index(drop=True)


def _counted(result: ExperimentResult, by_seed: pd.DataFrame) -> dict[str, str]:
    rows = len(result.settings.rows(result.experiment))
    return counts(result.settings, rows, by_seed["row"].nunique(), len(_pairs(by_seed)))


def _describe(saved: SavedResult, new: pd.DataFrame) -> str:
    seeds = ", ".join(str(seed) for seed in sorted(new["seed"].unique()))
    told = "; ".join(saved.facts[name] for name in TOLD if name in saved.facts)
    return f"{saved.experiment}/{saved.folder.name}, seed {seeds} ({told})"
