"""Describe a result in short texts, rendered from its record and numbers for pages, report and terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import NamedTuple

import pandas as pd

from firststep.backbones import BACKBONES
from firststep.paper.record import (
    CodeVersion,
    Layout,
    Provenance,
    ResultRecord,
    ScaleRecord,
    Setting,
    StandIn,
)
from firststep.training import TrainingTime
from firststep.utils.table import MISSING

UNITS = (("days", 86_400), ("h", 3_600), ("min", 60))
ONE_SEED = (
    "Accuracies are in per cent, of one training per row, with the 95 % half-width over the test episodes."
)
SEVERAL_SEEDS = (
    "Accuracies are in per cent, means over one training per seed, with the 95 % half-width of Student's t "
    "over the trainings. `(2 of 3)` marks a cell with fewer trainings."
)
ABOUT = (
    f"`{MISSING}` was not run here, or is not printed in the paper. `ours − paper` has the half-width of a "
    "difference of independent means. `gain, ours` is the difference to the row named beside it on the same "
    "tasks, paired by {paired}. `gain, paper` is the difference of the printed means."
)
BEFORE = {
    "condition_number": "`κ`: condition number before the first step, geometric mean.",
    "rank": "`rank`: numerical rank of the Gram matrix before the first step.",
}
FEW = 3
"""Number of compared rows that the conclusion names one by one."""


def how_it_was_made(record: ResultRecord, cells: pd.DataFrame) -> dict[str, str]:
    """Return name → text: command, scale, data, seeds, code, hardware, time and settings.

    Args:
        record: of the result.
        cells: its numbers, from which the rows with results are counted.
    """
    made, planned, seeds = record.provenance, record.table.planned, record.seeds
    trained = cells[cells["accuracy"].notna()].groupby("row")["seeds"].max()
    lines = {
        "command": shlex.join(record.command),
        "experiment": record.definition,
        "scale": describe_scale(record.scale),
        "rows": f"{len(trained)} of {planned} have results",
    }
    if len(seeds) > 1:
        lines["trainings"] = f"{trained.sum()} of {planned * len(seeds)} have results"
    lines["data"] = describe_stand_in(record.stand_in)
    if made is None:
        lines["runs"] = "" if record.exists else "nothing has been run yet"
        return {name: text for name, text in lines.items() if text}
    lines["data fingerprint"] = _listed(f"{data.name} {data.fingerprint}" for data in made.data)
    if len(seeds) > 1:
        listed = ", ".join(map(str, seeds))
        lines["training seeds"] = f"{len(seeds)} seeds: {listed}; intervals over trainings (Student t)"
    else:
        own = _listed([made.config["seed"]] if "seed" in made.config else made.varying.get("seed", seeds))
        lines["training seed"] = f"{own} (one training per row: intervals are over test episodes)"
    tests = (
        f"{t.episodes} {t.split} episodes, seed {t.seed}, {t.queries} queries a class" for t in made.tests
    )
    lines |= {
        "test": _listed(tests),
        "code": _listed(map(_code, made.code)),
        "initial weights": f"digest {_listed(made.initial_weights)}" if made.initial_weights else "",
        "torch": _listed(made.torch),
        "hardware": _listed(made.hardware),
        "training time": _times(made),
        "settings": _settings(made),
    }
    return {name: text for name, text in lines.items() if text}


def _code(code: CodeVersion) -> str:
    return f"firststep {code.firststep}" + (f", commit {code.commit}" if code.commit else "")


def _times(made: Provenance) -> str:
    known = [(run, run.seconds) for run in made.runs if run.seconds is not None]
    each = "; ".join(f"{run.name} {TrainingTime(s, sessions=1, killed=run.killed)}" for run, s in known)
    total = f"{made.training_seconds:.0f} s in all for {len(known)} of {len(made.runs)} runs: {each}"
    return total if made.runs else ""


def _settings(made: Provenance) -> str:
    """Return what all runs share, and the inner rates; the table's rows say in what else they differ."""
    shared = [f"{name}={value}" for name, value in made.config.items()]
    rates = ", ".join(sorted(map(str, made.varying.get("rate", []))))
    return ", ".join([*shared, *([f"rate by the number of features: {rates}"] if rates else [])])


def _listed(values: Iterable[object]) -> str:
    return "; ".join(dict.fromkeys(map(str, values)))


def describe_scale(scale: ScaleRecord) -> str:
    """Return the scale and everything that it changes, in one line."""
    changes = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in scale.changes.items())
    asked = ", ".join(name.replace("_", " ") for name in scale.overrides)
    return (
        scale.name
        + (f" with other {asked}" if asked else "")
        + (f" (changed from the paper's protocol: {changes})" if changes else " (the paper's protocol)")
    )


def describe_stand_in(stand_in: StandIn | None) -> str:
    """Return which data are not the experiment's own; empty if all are."""
    if stand_in is None:
        return ""
    missing = ", ".join(stand_in.missing)
    if stand_in.used is None:
        return f"Not given, hence missing: {missing}."
    replaced = f"Run on {stand_in.used} in place of {missing}, which"
    if not stand_in.printed:
        return f"{replaced} the experiment is about."
    return f"{replaced} the paper's numbers are about: compare the order and the gains, not the accuracies."


def legend(layout: Layout, seeds: int) -> str:
    """Return how to read a table with this number of trainings per row."""
    start, paired = (SEVERAL_SEEDS, "training") if seeds > 1 else (ONE_SEED, "episode")
    shown = [text for name, text in BEFORE.items() if name in layout.shows]
    return " ".join([start, ABOUT.format(paired=paired), *shown])


class Gain(NamedTuple):
    """A row's gain over another row, in points."""

    row: str
    over: str
    value: float
    half_width: float

    def __str__(self) -> str:
        interval = "" if pd.isna(self.half_width) else f" ± {self.half_width:.1f}"
        return f"{self.value:+.1f}{interval}"


def conclusion(record: ResultRecord, cells: pd.DataFrame) -> str:
    """Return the gains after the first and the last trained step; empty if nothing is compared."""
    trained = 5 if record.provenance is None else record.provenance.config.get("steps", 5)
    shown = {column.step for column in record.table.columns if column.rate_multiplier == 1}
    parts = []
    for step in sorted(step for step in shown if step in (1, trained)):
        at = cells[(cells["step"] == step) & (cells["rate_multiplier"] == 1) & cells["gain"].notna()]
        gains = [
            Gain(*line) for line in at[["row", "gain_over", "gain", "gain_ci95"]].itertuples(index=False)
        ]
        if gains:
            after = f"after {step} step{'s' * (step > 1)}"
            parts.append(_one_by_one(gains, after) if len(gains) <= FEW else _counted(gains, after))
    return " ".join(parts)


def _one_by_one(gains: list[Gain], after: str) -> str:
    listed = ", ".join(f"`{gain.row}` {gain} points over `{gain.over}`" for gain in gains)
    return f"Gain {after}: {listed}."


def _counted(gains: list[Gain], after: str) -> str:
    better, worse = (sum(sign * gain.value > gain.half_width for gain in gains) for sign in (1, -1))
    best = max(gains, key=lambda gain: gain.value)
    level = len(gains) - better - worse
    return (
        f"{after.capitalize()}, {better} of {len(gains)} rows gain, {worse} lose and {level} are level; the "
        f"largest gain is {best} points, `{best.row}` over `{best.over}`."
    )


@dataclass(frozen=True)
class Budget:
    """A few words for each part of what a result took; empty where it is unknown."""

    data: str = ""
    networks: str = ""
    images: str = ""
    training: str = ""
    """Meta-updates × tasks."""
    rate: str = ""
    """Inner rate α."""
    test: str = ""
    time: str = ""

    def __str__(self) -> str:
        return "; ".join(part for part in astuple(self) if part)


def budget_of(record: ResultRecord, cells: pd.DataFrame) -> Budget:
    """Return the budget of a result with these numbers; an empty one if nothing was run here."""
    made = record.provenance
    if made is None:
        return Budget()
    settings = record.scale.changes | made.config
    size, updates, tasks = (settings.get(name) for name in ("image_size", "updates", "meta_batch"))
    rates = [made.config["rate"]] if "rate" in made.config else made.varying.get("rate", [])
    known = [run for run in made.runs if run.seconds is not None]
    return Budget(
        data=", ".join(dict.fromkeys(data.name for data in made.data)),
        networks=_networks(set(cells.loc[cells["accuracy"].notna(), "backbone"]), settings),
        images=f"{size} px" if size else "",
        training=f"{updates:,} updates × {tasks or 4} tasks" if updates else "",
        rate=f"α {listed}" if (listed := ", ".join(map(str, _numbers(rates)))) else "",
        test=f"{made.tests[0].episodes} {made.tests[0].split} episodes" if made.tests else "",
        time=f"{duration(made.training_seconds)} for {len(known)} runs" if known else "",
    )


def _numbers(values: Iterable[Setting]) -> list[float]:
    return sorted(value for value in values if isinstance(value, float))


def _networks(used: set[str], settings: dict[str, Setting]) -> str:
    networks = [backbone for name, backbone in BACKBONES.items() if name in used]
    filters = settings.get("filters") if any(each.has_filters for each in networks) else None
    return ", ".join([*(each.title for each in networks), *([f"{filters} filters"] if filters else [])])


def duration(seconds: float) -> str:
    """Format a duration in the largest unit of which it has two."""
    for unit, size in UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
