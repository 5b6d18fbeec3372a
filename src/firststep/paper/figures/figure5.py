"""Figure 5: what accuracy costs in parameters, for every method."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from firststep.paper.figures.frames import curves
from firststep.paper.figures.labels import place_labels
from firststep.paper.figures.look import (
    SMALL,
    count,
    finish,
    in_print,
    log_axis,
    nothing,
    page,
    say_nothing,
)
from firststep.paper.figures.panels import METHOD_NAMES, label
from firststep.paper.figures.records import Curve, in_order
from firststep.paper.figures.styles import line_style

HORIZON = 5


@in_print
def figure5(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """A panel for each dataset and task; the labels name the networks."""
    found = sorted(curves(accuracies), key=lambda curve: not curve.is_ours)
    settings = in_order(curve.setting._replace(backbone="") for curve in found)
    if not settings:
        return nothing(scale, note)
    figure = page(3.4 * len(settings))
    gaps: list[str] = []
    drawn = []
    for axes, setting in zip(figure.subplots(len(settings), 1, squeeze=False)[:, 0], settings, strict=True):
        own = [curve for curve in found if curve.setting._replace(backbone="") == setting]
        taken = {step for curve in own for step in curve.present}
        step = HORIZON if HORIZON in taken or not taken else max(taken)
        there = [curve for curve in own if step in curve.present and curve.parameters > 0]
        gaps += [_gap(curve, step) for curve in own if curve not in there]
        _points(axes, there, [curve.method for curve in found], step)
        axes.set_title(str(setting))
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
        style = line_style(curve.method, curve.is_ours, methods) | {"linestyle": "none", "markersize": 5.5}
        text = label(curve.method, curve, curve.setting)
        axes.errorbar(curve.parameters, accuracy, width, label=text, elinewidth=0.7, **style)
    axes.set(xlabel="parameters in all (log scale)", ylabel=f"test accuracy after {step} steps (%)")
    axes.margins(0.12, 0.15)
    if found:
        log_axis(axes, "x", count)
    else:
        say_nothing(axes)


def _network(curve: Curve) -> str:
    return f"{curve.setting.backbone}-{curve.filters}" if curve.filters else curve.setting.backbone


def _gap(curve: Curve, step: int) -> str:
    who = f"{METHOD_NAMES.get(curve.method, curve.method)}, {_network(curve)} ({curve.source})"
    return who if step not in curve.present else f"parameters of {who}"
