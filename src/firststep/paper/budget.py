"""What a result took: data, network, training, test and time, in a few words each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from firststep.backbones import BACKBONES
from firststep.paper.record import Provenance, ResultRecord, Setting

UNITS = (("days", 86_400), ("h", 3_600), ("min", 60))


@dataclass(frozen=True)
class Budget:
    """A few words for each part; empty where it is unknown."""

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
        parts = (self.data, self.networks, self.images, self.training, self.rate, self.test, self.time)
        return "; ".join(part for part in parts if part)


def budget_of(record: ResultRecord, cells: pd.DataFrame) -> Budget:
    """Return the budget of a result with these numbers; an empty one if nothing was run here."""
    made = record.provenance
    if made is None:
        return Budget()
    size, updates, tasks = (_count(record, made, name) for name in ("image_size", "updates", "meta_batch"))
    rates = [made.config["rate"]] if "rate" in made.config else made.varying.get("rate", [])
    known = [run for run in made.runs if run.seconds is not None]
    return Budget(
        data=", ".join(dict.fromkeys(data.name for data in made.data)),
        networks=_networks(record, made, cells),
        images=f"{size} px" if size else "",
        training=f"{updates:,} updates × {tasks or 4} tasks" if updates else "",
        rate=_rates(rates),
        test=f"{made.tests[0].episodes} {made.tests[0].split} episodes" if made.tests else "",
        time=f"{duration(made.training_seconds)} for {len(known)} runs" if known else "",
    )


def _rates(rates: Iterable[Setting]) -> str:
    listed = ", ".join(map(str, sorted(rate for rate in rates if isinstance(rate, float))))
    return f"α {listed}" if listed else ""


def _networks(record: ResultRecord, made: Provenance, cells: pd.DataFrame) -> str:
    used = set(cells.loc[cells["accuracy"].notna(), "backbone"])
    networks = [backbone for name, backbone in BACKBONES.items() if name in used]
    filters = _count(record, made, "filters") if any(each.has_filters for each in networks) else None
    return ", ".join([*(each.title for each in networks), *([f"{filters} filters"] if filters else [])])


def _count(record: ResultRecord, made: Provenance, name: str) -> int | None:
    """Return the value that all runs share, or else that of the scale."""
    values = (made.config.get(name), record.scale.changes.get(name))
    return next((value for value in values if isinstance(value, int)), None)


def duration(seconds: float) -> str:
    """Format a duration in the largest unit of which it has two."""
    for unit, size in UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
