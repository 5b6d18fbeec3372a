"""What figures are drawn from: the accuracies of a model over its steps, and the log of its training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

BACKBONES = ("Conv4", "Conv6", "ResNet10", "ResNet18")
"""As they are written in figures, in order of depth."""


class Setting(NamedTuple):
    """What is learned by which network."""

    dataset: str
    backbone: str
    ways: int
    shots: int

    def __str__(self) -> str:
        return ", ".join(part for part in (self.dataset, self.backbone, self.task) if part)

    @property
    def task(self) -> str:
        return f"{self.ways}-way {self.shots}-shot" if self.ways else ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Accuracies in per cent of one model after its steps, ascending; NaN where there is none."""

    source: str
    row: str
    setting: Setting
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
    """What one run logged while it trained."""

    row: str
    setting: Setting
    method: str
    subset: str
    entries: pd.DataFrame

    def line(self, split: str, quantity: str, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Meta-updates, and the quantity at a step or stage after each."""
        e = self.entries
        chosen = e[(e["split"] == split) & (e["quantity"] == quantity) & (e["index"] == index)]
        return chosen["update"].to_numpy(), chosen["value"].to_numpy()

    def indices(self, split: str, quantity: str) -> set[int]:
        """The steps or stages at which there is a number."""
        e = self.entries
        chosen = e[(e["split"] == split) & (e["quantity"] == quantity) & e["value"].notna()]
        return {int(index) for index in chosen["index"].dropna()}


def in_order(settings: Iterable[Setting]) -> list[Setting]:
    """Without repetition: datasets as they come, networks by depth, then ways and shots."""
    given = list(dict.fromkeys(settings))
    datasets = list(dict.fromkeys(setting.dataset for setting in given))
    return sorted(
        given, key=lambda s: (datasets.index(s.dataset), depth(s.backbone), s.backbone, s.ways, s.shots)
    )


def depth(backbone: str) -> int:
    """Position of a network among the paper's; others come after."""
    return BACKBONES.index(backbone) if backbone in BACKBONES else len(BACKBONES)
