"""Curves and training logs of models, from the tidy frames of :mod:`firststep.paper.measurements`.

A curve is a trained model or a printed row of the paper. Missing numbers stay gaps.
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
    """Dataset, network and task."""

    dataset: str
    backbone: str
    """A key of ``BACKBONES``."""
    ways: int
    shots: int

    def __str__(self) -> str:
        return ", ".join(part for part in (self.dataset, self.network, self.task) if part)

    @property
    def network(self) -> str:
        """The title of the network."""
        return BACKBONES[self.backbone].title if self.backbone in BACKBONES else self.backbone

    @property
    def task(self) -> str:
        """Ways and shots; empty if not stated."""
        return f"{self.ways}-way {self.shots}-shot" if self.ways else ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Accuracies of one model in per cent, by ascending step; NaN where there is none."""

    source: str
    row: str
    scenario: Scenario
    filters: int
    """0 if not stated."""
    method: str
    subset: str
    steps: np.ndarray
    accuracy: np.ndarray
    ci95: np.ndarray
    parameters: float

    @property
    def is_ours(self) -> bool:
        """Whether the model was trained here."""
        return self.source == "ours"

    @property
    def present(self) -> set[int]:
        """Steps with an accuracy."""
        return {int(step) for step in self.steps[np.isfinite(self.accuracy)]}

    def at(self, step: int) -> tuple[float, float]:
        """Return accuracy and half-width after ``step`` steps; NaN if there is none."""
        found = np.flatnonzero(self.steps == step)
        return (self.accuracy[found[0]], self.ci95[found[0]]) if len(found) else (np.nan, np.nan)


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """Training log of one model, the mean of several trainings."""

    row: str
    scenario: Scenario
    method: str
    subset: str
    entries: pd.DataFrame

    def line(self, split: str, quantity: str, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return meta-updates, and the quantity at a step or stage after each."""
        e = self.entries
        chosen = e[(e["split"] == split) & (e["quantity"] == quantity) & (e["index"] == index)]
        return chosen["update"].to_numpy(dtype=float), chosen["value"].to_numpy()

    def band(self, split: str, quantity: str, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the interval over seeds for :meth:`line`; NaN if there is one seed."""
        e = self.entries
        chosen = e[(e["split"] == split) & (e["quantity"] == quantity) & (e["index"] == index)]
        return chosen["low"].to_numpy(), chosen["high"].to_numpy()

    def indices(self, split: str, quantity: str) -> set[int]:
        """Return the steps or stages with a number."""
        e = self.entries
        chosen = e[(e["split"] == split) & (e["quantity"] == quantity) & e["value"].notna()]
        return set(map(int, chosen["index"]))


def curves(accuracies: pd.DataFrame) -> list[Curve]:
    """Return every model of the frame at its trained rate, in the frame's order."""
    frame = accuracies[accuracies["rate_multiplier"] == 1]
    found = []
    for names, group in frame.groupby(["source", *MODEL], sort=False, dropna=False):
        source, *model = names
        # If a step has two lines, one with a number precedes a gap.
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
    """Return the training log of every model, in the frame's order."""
    groups = histories.groupby(MODEL, sort=False, dropna=False)
    return [
        Log(**_model(list(model)), entries=group.sort_values("update", kind="stable"))
        for model, group in groups
    ]


def _model(values: list[Any]) -> dict[str, Any]:
    named = dict(zip(MODEL, values, strict=True))
    scenario = Scenario(named["dataset"], named["backbone"], int(named["ways"]), int(named["shots"]))
    return {"row": named["row"], "scenario": scenario, "method": named["method"], "subset": named["subset"]}


def in_order(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Return each scenario once: datasets in their order, networks by depth, then ways and shots."""
    given = list(dict.fromkeys(scenarios))
    datasets = list(dict.fromkeys(scenario.dataset for scenario in given))
    return sorted(given, key=lambda s: (datasets.index(s.dataset), depth(s.backbone), s.ways, s.shots))


def depth(backbone: str) -> tuple[int, str]:
    """Return the sort key of a network: registered ones are in order of depth, others follow."""
    names = list(BACKBONES)
    return (names.index(backbone) if backbone in names else len(names), backbone)
