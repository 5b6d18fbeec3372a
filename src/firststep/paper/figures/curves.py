"""What figures are drawn from: the accuracies of a model over its steps, and the log of its training.

One curve is one trained model or one printed row of the paper; both come from the tidy frames of
:mod:`firststep.paper.measurements`. What is missing there stays a gap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from firststep.backbones import BACKBONES
from firststep.paper.measurements import MODEL


class Scenario(NamedTuple):
    """What is learned by which network."""

    dataset: str
    backbone: str
    """A key of ``BACKBONES``."""
    ways: int
    shots: int

    def __str__(self) -> str:
        return ", ".join(part for part in (self.dataset, self.network, self.task) if part)

    @property
    def network(self) -> str:
        """As figures write it."""
        return BACKBONES[self.backbone].title if self.backbone in BACKBONES else self.backbone

    @property
    def task(self) -> str:
        return f"{self.ways}-way {self.shots}-shot" if self.ways else ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Accuracies in per cent of one model after its steps, ascending; NaN where there is none."""

    source: str
    row: str
    scenario: Scenario
    filters: int
    """0 where not stated"""
    method: str
    subset: str
    steps: np.ndarray
    accuracy: np.ndarray
    ci95: np.ndarray
    parameters: float

    @property
    def is_ours(self) -> bool:
        return self.source == "ours"

    @property
    def present(self) -> set[int]:
        """The steps that have an accuracy."""
        return {int(step) for step in self.steps[np.isfinite(self.accuracy)]}

    def at(self, step: int) -> tuple[float, float]:
        """Accuracy and half-width after ``step`` steps; NaN where there is none."""
        found = np.flatnonzero(self.steps == step)
        return (self.accuracy[found[0]], self.ci95[found[0]]) if len(found) else (np.nan, np.nan)


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """What the trainings of one model logged, their mean where there are several."""

    row: str
    scenario: Scenario
    method: str
    subset: str
    entries: pd.DataFrame

    def line(self, split: str, quantity: str, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Meta-updates, and the quantity at a step or stage after each."""
        e = self.entries
        chosen = e[(e["split"] == split) & (e["quantity"] == quantity) & (e["index"] == index)]
        return chosen["update"].to_numpy(dtype=float), chosen["value"].to_numpy()

    def band(self, split: str, quantity: str, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the interval over seeds, beside :meth:`line`; NaN where there is none."""
        e = self.entries
        chosen = e[(e["split"] == split) & (e["quantity"] == quantity) & (e["index"] == index)]
        return chosen["low"].to_numpy(), chosen["high"].to_numpy()

    def indices(self, split: str, quantity: str) -> set[int]:
        """The steps or stages at which there is a number."""
        e = self.entries
        chosen = e[(e["split"] == split) & (e["quantity"] == quantity) & e["value"].notna()]
        return set(map(int, chosen["index"]))


def curves(accuracies: pd.DataFrame) -> list[Curve]:
    """Every model of the frame at the rate it was trained with, in the frame's order."""
    frame = accuracies[accuracies["rate_multiplier"] == 1]
    found = []
    for names, group in frame.groupby(["source", *MODEL], sort=False, dropna=False):
        source, *model = names
        # A step that is given twice counts once, and a number before a gap.
        steps = group.sort_values(["step", "accuracy"], kind="stable").drop_duplicates("step")
        found.append(
            Curve(
                source=source,
                **_model(model),
                filters=0 if pd.isna(model[MODEL.index("filters")]) else int(model[MODEL.index("filters")]),
                steps=steps["step"].to_numpy(dtype=float),
                accuracy=steps["accuracy"].to_numpy(),
                ci95=steps["ci95"].to_numpy(),
                parameters=float(group["parameters"].max()),
            )
        )
    return found


def logs(histories: pd.DataFrame) -> list[Log]:
    """What every run logged while it trained, in the frame's order."""
    groups = histories.groupby(MODEL, sort=False, dropna=False)
    return [
        Log(**_model(list(model)), entries=group.sort_values("update", kind="stable"))
        for model, group in groups
    ]


def _model(values: list[Any]) -> dict[str, Any]:
    facts = dict(zip(MODEL, values, strict=True))
    scenario = Scenario(facts["dataset"], facts["backbone"], int(facts["ways"]), int(facts["shots"]))
    return {"row": facts["row"], "scenario": scenario, "method": facts["method"], "subset": facts["subset"]}


def in_order(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Without repetition: datasets as they come, networks by depth, then ways and shots."""
    given = list(dict.fromkeys(scenarios))
    datasets = list(dict.fromkeys(scenario.dataset for scenario in given))
    return sorted(given, key=lambda s: (datasets.index(s.dataset), depth(s.backbone), s.ways, s.shots))


def depth(backbone: str) -> tuple[int, str]:
    """Position of a network among the registered ones, which are in order of depth; others come after."""
    names = list(BACKBONES)
    return (names.index(backbone) if backbone in names else len(names), backbone)
