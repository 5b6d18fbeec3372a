"""Accuracy against parameters of every method: plain, with the loss, and with a shared head."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from firststep.paper.figures.canvas import count, finish, in_style, log_axis, nothing, page, say_nothing
from firststep.paper.figures.curves import Curve, curves, in_order
from firststep.paper.figures.panels import METHOD_NAMES
from firststep.plotting import CONDITIONED, line_style

STEPS = (1, 5)
PLAIN, LOSS, SHARED = "plain", "with the loss", "shared head"
ENDINGS = {CONDITIONED: LOSS, ", shared head": SHARED}
"""Ending of a method's name → the column."""


@in_style
def rivals(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw a row per step and a column per variant; a method keeps its marker."""
    found = [curve for curve in curves(accuracies) if curve.is_ours]
    scenarios = in_order(curve.scenario for curve in found)
    if not scenarios:
        return nothing(scale, note)
    rows = [(scenario, step) for scenario in scenarios for step in STEPS]
    figure = page(2.1 * len(rows))
    grid = figure.subplots(len(rows), 3, squeeze=False, sharex=True, sharey="row")
    methods = list(dict.fromkeys(_parts(curve)[0] for curve in found))
    gaps = []
    for line, (scenario, step) in zip(grid, rows, strict=True):
        for axes, variant in zip(line, (PLAIN, LOSS, SHARED), strict=True):
            own = [c for c in found if c.scenario == scenario and _parts(c)[1] == variant]
            there = [curve for curve in own if step in curve.present and curve.parameters > 0]
            gaps += [f"{curve.row} after {step} steps" for curve in own if curve not in there]
            _points(axes, there, methods, step)
            axes.set_title(f"{variant}\n{scenario}" if len(scenarios) > 1 else variant)
        line[0].set_ylabel(f"accuracy after\n{step} step{'s' * (step > 1)} (%)")
    for axes in grid[-1]:
        axes.set_xlabel("parameters (log scale)")
        if axes.lines:
            log_axis(axes, "x", count)
    return finish(figure, scale, f"{note} All: {scenarios[0]}." if len(scenarios) == 1 else note, gaps)


def _parts(curve: Curve) -> tuple[str, str]:
    """Return the method and its variant."""
    if curve.method == "conditioned":
        return "maml", LOSS
    for ending, variant in ENDINGS.items():
        if curve.method.endswith(ending):
            return curve.method.removesuffix(ending), variant
    return curve.method, PLAIN


def _points(axes: Axes, found: Sequence[Curve], methods: Sequence[str], step: int) -> None:
    for curve in found:
        method = _parts(curve)[0]
        accuracy, width = curve.at(step)
        style = line_style(method, methods) | {"linestyle": "none", "markersize": 5}
        text = METHOD_NAMES.get(method, method)
        axes.errorbar(curve.parameters, accuracy, width, label=text, elinewidth=0.7, **style)
    if not found:
        say_nothing(axes)
