"""Curves, training logs and panels, from the tidy frames of :mod:`firststep.paper.measurements`.

A curve is a trained model or a printed row of the paper. A panel has the curves and logs of one scenario,
ours with the paper's beside them. Missing numbers stay gaps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from firststep.backbones import BACKBONES
from firststep.paper.measurements import MODEL

NO_RESULTS = "all test results of runs here"
METHOD_NAMES = {"maml": "MAML", "conditioned": "conditioned"}


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

    def values(self, column: str, split: str, quantity: str, index: int) -> np.ndarray:
        """Return ``update``, ``value``, ``low`` or ``high`` of a quantity at a step or stage."""
        e = self.entries
        chosen = e[(e["split"] == split) & (e["quantity"] == quantity) & (e["index"] == index)]
        return chosen[column].to_numpy(dtype=float)

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


@dataclass(frozen=True)
class Panel:
    """The curves and logs of one scenario."""

    scenario: Scenario
    curves: list[Curve]
    """Ours, and the paper's beside them."""
    logs: list[Log]


def panels(curves: Sequence[Curve], logs: Sequence[Log] = ()) -> list[Panel]:
    """Return a panel per scenario that was run here, then one per other scenario of the paper."""
    paper = [curve for curve in curves if not curve.is_ours]
    printed = {curve.scenario for curve in paper}
    here = in_order([c.scenario for c in curves if c.is_ours] + [log.scenario for log in logs])
    beside = {scenario: _beside(scenario, printed) for scenario in here}
    found = []
    for scenario in [*here, *in_order(s for s in (c.scenario for c in paper) if s not in beside.values())]:
        own = [curve for curve in curves if curve.is_ours and curve.scenario == scenario]
        theirs = [curve for curve in paper if curve.scenario == beside.get(scenario, scenario)]
        found.append(Panel(scenario, own + theirs, [log for log in logs if log.scenario == scenario]))
    return found


def _beside(scenario: Scenario, printed: set[Scenario]) -> Scenario | None:
    """Return the paper's scenario to compare with: the same one, or else the only one with the same task.

    If several have the same task, none is returned: they would crowd the panel.
    """
    agreements: list[Callable[[Scenario], bool]] = [
        lambda other: other == scenario,
        lambda other: other[1:] == scenario[1:],
        lambda other: other[2:] == scenario[2:],
    ]
    for agrees in agreements:
        found = [other for other in printed if agrees(other)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


Named = Callable[[Sequence[Curve | Log]], list[str]]
"""Return the names that distinguish the curves or logs of a panel."""


def method_names(items: Sequence[Curve | Log]) -> list[str]:
    """Return the method of each, or its row if one source has the method several times."""
    keys = [(getattr(item, "source", "ours"), item.method) for item in items]
    often = Counter(keys)
    return [
        item.method if often[key] == 1 or not item.row else item.row
        for key, item in zip(keys, items, strict=True)
    ]


def is_default(item: Curve | Log) -> bool:
    """Return whether the loss, if there is one, constrains the classifier, the paper's default."""
    return item.method != "conditioned" or item.subset in ("", "cls")


def subset_names(items: Sequence[Curve | Log]) -> list[str]:
    """Return the parameters that each constrains; plain MAML constrains none."""
    return ["none" if item.method == "maml" else item.subset or "cls" for item in items]


def label(name: str, item: Curve | Log, scenario: Scenario) -> str:
    """Return the legend's text: name, source, and data and network if they are not the panel's."""
    who = "run here" if isinstance(item, Log) or item.is_ours else "paper"
    of = "" if item.scenario[:2] == scenario[:2] else f": {item.scenario.dataset}, {item.scenario.network}"
    return f"{METHOD_NAMES.get(name, name)} ({who}{of})"


def missing(shown: Sequence[Panel], named: Named) -> list[str]:
    """Return the missing accuracies: models without any, and steps that models lack."""
    if not any(curve.is_ours and curve.present for panel in shown for curve in panel.curves):
        return [NO_RESULTS]
    gaps = []
    for panel in shown:
        ours = [curve for curve in panel.curves if curve.is_ours]
        steps = {int(step) for curve in ours for step in curve.steps}
        there: dict[str, set[int]] = {name: set() for name in [*named(panel.curves), *named(panel.logs)]}
        for name, curve in zip(named(ours), ours, strict=True):
            there[name] |= curve.present
        if not any(there.values()):
            gaps.append(f"{panel.scenario} (not tested here)")
            continue
        for name, present in there.items():
            what = f"{METHOD_NAMES.get(name, name)} on {panel.scenario}"
            if not present:
                gaps.append(what)
            elif steps - present:
                gaps.append(f"{what} after {', '.join(map(str, sorted(steps - present)))} steps")
    return gaps


def missing_logs(shown: Sequence[Panel], named: Named) -> list[str]:
    """Return the models that have accuracies but no training log."""
    return [
        f"training log of {METHOD_NAMES.get(name, name)} on {panel.scenario}"
        for panel in shown
        for name in dict.fromkeys(named([curve for curve in panel.curves if curve.is_ours]))
        if name not in named(panel.logs)
    ]
