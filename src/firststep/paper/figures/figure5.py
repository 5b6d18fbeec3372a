"""Figure 5: accuracy against number of parameters, for every method."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from firststep.paper.figures.canvas import (
    SMALL,
    count,
    finish,
    in_style,
    log_axis,
    nothing,
    page,
    say_nothing,
)
from firststep.paper.figures.curves import Curve, curves, in_order
from firststep.paper.figures.labels import place_labels
from firststep.paper.figures.panels import METHOD_NAMES, label
from firststep.plotting import line_style

HORIZON = 5


@in_style
def figure5(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw a panel per dataset and task; labels name the networks."""
    found = sorted(curves(accuracies), key=lambda curve: not curve.is_ours)
    scenarios = in_order(curve.scenario._replace(backbone="") for curve in found)
    if not scenarios:
        return nothing(scale, note)
    figure = page(3.4 * len(scenarios))
    gaps: list[str] = []
    drawn = []
    grid = figure.subplots(len(scenarios), 1, squeeze=False)[:, 0]
    for axes, scenario in zip(grid, scenarios, strict=True):
        own = [curve for curve in found if curve.scenario._replace(backbone="") == scenario]
        taken = {step for curve in own for step in curve.present}
        step = HORIZON if HORIZON in taken or not taken else max(taken)
        there = [curve for curve in own if step in curve.present and curve.parameters > 0]
        gaps += [_gap(curve, step) for curve in own if curve not in there]
        _points(axes, there, [curve.method for curve in found], step)
        axes.set_title(str(scenario))
        drawn.append((axes, there, step))
    finish(figure, scale, note, gaps)
    for axes, there, step in drawn:
        points = [(curve.parameters, curve.at(step)[0]) for curve in there]
        widths = [curve.at(step)[1] for curve in there]
        place_labels(figure, axes, points, widths, [_network(curve) for curve in there], SMALL)
    return figure


def _points(axes: Axes, found: Sequence[Curve], methods: Sequence[str], step: int) -> None:
    for curve in found:
        accuracy, width = curve.at(step)
        style = line_style(curve.method, methods, hollow=not curve.is_ours)
        style |= {"linestyle": "none", "markersize": 5.5}
        text = label(curve.method, curve, curve.scenario)
        axes.errorbar(curve.parameters, accuracy, width, label=text, elinewidth=0.7, **style)
    axes.set(xlabel="parameters in all (log scale)", ylabel=f"test accuracy after {step} steps (%)")
    axes.margins(0.12, 0.15)
    if found:
        log_axis(axes, "x", count)
    else:
        say_nothing(axes)


def _network(curve: Curve) -> str:
    network = curve.scenario.network
    return f"{network}-{curve.filters}" if curve.filters else network


def _gap(curve: Curve, step: int) -> str:
    who = f"{METHOD_NAMES.get(curve.method, curve.method)}, {_network(curve)} ({curve.source})"
    return who if step not in curve.present else f"parameters of {who}"
