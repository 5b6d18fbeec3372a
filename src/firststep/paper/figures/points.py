"""Figures of parameters against accuracy: Figure 5, and the methods in three variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from firststep.paper.figures.canvas import (
    SMALL,
    count,
    finish,
    log_axis,
    nothing,
    page,
    register_figure,
    say_nothing,
)
from firststep.paper.figures.labels import place_labels
from firststep.paper.figures.models import METHOD_NAMES, Curve, curves, in_order, label
from firststep.plotting import CONDITIONED, line_style

HORIZON = 5
PLAIN, LOSS, SHARED = "plain", "with the loss", "shared head"
ENDINGS = {CONDITIONED: LOSS, ", shared head": SHARED}
"""Ending of a method's name → its column."""


def _points(
    axes: Axes,
    found: Sequence[Curve],
    step: int,
    named: Callable[[Curve], tuple[str, str]],
    methods: Sequence[str],
    size: float,
) -> None:
    """Draw accuracy after a step against parameters; ``named`` returns a model's method and legend text."""
    for curve in found:
        method, text = named(curve)
        accuracy, width = curve.at(step)
        style = line_style(method, methods, hollow=not curve.is_ours)
        style |= {"linestyle": "none", "markersize": size}
        axes.errorbar(curve.parameters, accuracy, width, label=text, elinewidth=0.7, **style)
    if not found:
        say_nothing(axes)


def _drawable(found: Sequence[Curve], step: int) -> list[Curve]:
    return [curve for curve in found if step in curve.present and curve.parameters > 0]


@register_figure("figure5")
def figure5(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw a panel per dataset and task; labels name the networks."""
    found = sorted(curves(accuracies), key=lambda curve: not curve.is_ours)
    scenarios = in_order(curve.scenario._replace(backbone="") for curve in found)
    if not scenarios:
        return nothing(scale, note)
    figure = page(3.4 * len(scenarios))
    methods = [curve.method for curve in found]
    gaps: list[str] = []
    drawn = []
    grid = figure.subplots(len(scenarios), 1, squeeze=False)[:, 0]
    for axes, scenario in zip(grid, scenarios, strict=True):
        own = [curve for curve in found if curve.scenario._replace(backbone="") == scenario]
        taken = {step for curve in own for step in curve.present}
        step = HORIZON if HORIZON in taken or not taken else max(taken)
        there = _drawable(own, step)
        gaps += [_gap(curve, step) for curve in own if curve not in there]
        _points(axes, there, step, lambda c: (c.method, label(c.method, c, c.scenario)), methods, 5.5)
        axes.set(xlabel="parameters in all (log scale)", ylabel=f"test accuracy after {step} steps (%)")
        axes.set_title(str(scenario))
        axes.margins(0.12, 0.15)
        if there:
            log_axis(axes, "x", count)
        drawn.append((axes, there, step))
    finish(figure, scale, note, gaps)
    for axes, there, step in drawn:
        points = [(curve.parameters, curve.at(step)[0]) for curve in there]
        widths = [curve.at(step)[1] for curve in there]
        place_labels(figure, axes, points, widths, [_network(curve) for curve in there], SMALL)
    return figure


def _network(curve: Curve) -> str:
    network = curve.scenario.network
    return f"{network}-{curve.filters}" if curve.filters else network


def _gap(curve: Curve, step: int) -> str:
    who = f"{METHOD_NAMES.get(curve.method, curve.method)}, {_network(curve)} ({curve.source})"
    return who if step not in curve.present else f"parameters of {who}"


@register_figure("rivals")
def rivals(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw a row per step and a column per variant of the methods; a method keeps its marker."""
    found = [curve for curve in curves(accuracies) if curve.is_ours]
    scenarios = in_order(curve.scenario for curve in found)
    if not scenarios:
        return nothing(scale, note)
    rows = [(scenario, step) for scenario in scenarios for step in (1, HORIZON)]
    figure = page(2.1 * len(rows))
    grid = figure.subplots(len(rows), 3, squeeze=False, sharex=True, sharey="row")
    methods = list(dict.fromkeys(_parts(curve)[0] for curve in found))
    gaps = []
    for line, (scenario, step) in zip(grid, rows, strict=True):
        for axes, variant in zip(line, (PLAIN, LOSS, SHARED), strict=True):
            own = [c for c in found if c.scenario == scenario and _parts(c)[1] == variant]
            there = _drawable(own, step)
            gaps += [f"{curve.row} after {step} steps" for curve in own if curve not in there]
            _points(axes, there, step, _named, methods, 5)
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


def _named(curve: Curve) -> tuple[str, str]:
    method = _parts(curve)[0]
    return method, METHOD_NAMES.get(method, method)
