"""Figure 1: descent at a high and a low condition number, and the first two steps of each network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from firststep.paper.figures.canvas import finish, page, register_figure, say_nothing
from firststep.paper.figures.models import (
    METHOD_NAMES,
    NO_RESULTS,
    Curve,
    Scenario,
    curves,
    depth,
    in_order,
    is_default,
    label,
)
from firststep.plotting import BLUE, VERMILION, line_style

DESCENT_STEPS = 10
RATE = 0.5
ANGLE = np.deg2rad(25)  # of the valley, so that neither axis is special
START = (1.0, 0.3)  # along the flat and the steep direction
Eigenvalues = tuple[float, float]
"""Eigenvalues of the Hessian in the flat and the steep direction, both below 2 / RATE for stability."""
HIGH, LOW = (0.1, 3.6), (1.0, 1.2)
"""Eigenvalues of the two valleys; the paper does not print its own."""
STEPS = (1, 2)
STRIDE = 0.16
"""Distance from the first step of a series to its second; networks are 1 apart."""
PLACES = {
    ("maml", "ours"): -0.3,
    ("maml", "paper"): -0.22,
    ("conditioned", "ours"): 0.06,
    ("conditioned", "paper"): 0.14,
}
"""Offset of each series in the column of a network."""


@register_figure("figure1")
def figure1(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw the two descents, and accuracies after one and two steps in a panel per dataset and task."""
    found = [curve for curve in curves(accuracies) if curve.method in METHOD_NAMES and is_default(curve)]
    # A panel has all networks side by side.
    scenarios = in_order(curve.scenario._replace(backbone="") for curve in found)
    columns = 1 if len(scenarios) < 2 else 2
    rows = max(1, -(-len(scenarios) // columns))
    figure = page(max(3.9, 2.0 * rows))
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=[1, 2.3])[0]
    high, low, *unused = left.subplots(max(rows, 2), 1)
    _draw_descent(high, HIGH, is_good=False)
    _draw_descent(low, LOW, is_good=True)
    grid = right.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    gaps = []
    for axes, scenario in zip(grid, scenarios, strict=False):
        own = [curve for curve in found if curve.scenario._replace(backbone="") == scenario]
        gaps += _first_steps(axes, own, scenario)
        axes.set(title=str(scenario), ylabel="test accuracy (%)", xlabel="network (step 1, then step 2)")
    if scenarios:
        grid[0].set_ylim(bottom=0)
        unused += list(grid[len(scenarios) :])
    else:
        say_nothing(grid[0])
        grid[0].set(ylabel="test accuracy (%)", xlabel="network (step 1, then step 2)")
    for axes in unused:
        axes.set_axis_off()
    eigenvalues = ", and ".join(f"{flat:g} and {steep:g}" for flat, steep in (HIGH, LOW))
    left_note = (
        f"Left: {DESCENT_STEPS} steps of gradient descent at learning rate {RATE:g} on ½ xᵀAx; eigenvalues "
        f"of A {eigenvalues} (the paper does not print its own)."
    )
    has_results = any(curve.is_ours and curve.present for curve in found)
    return finish(figure, scale, f"{note} {left_note}".strip(), gaps if has_results else [NO_RESULTS])


def _first_steps(axes: Axes, found: Sequence[Curve], scenario: Scenario) -> list[str]:
    """Draw a line from step 1 to step 2 per network, method and source; return what is missing."""
    networks = sorted({curve.scenario.backbone for curve in found}, key=depth)
    gaps = [] if any(curve.is_ours for curve in found) else [f"{scenario} (not tested here)"]
    for position, network in enumerate(networks):
        for (method, source), place in PLACES.items():
            at = position + place + np.array([0, STRIDE])
            own = [c for c in found if (c.scenario.backbone, c.method, c.source) == (network, method, source)]
            for curve in own:
                values, widths = np.array([curve.at(step) for step in STEPS]).T
                style = line_style(method, hollow=not curve.is_ours)
                style["linestyle"] = "-" if curve.is_ours else ":"
                text = label(method, curve, curve.scenario)
                axes.errorbar(at, values, widths, label=text, elinewidth=0.8, **style)
            there = {step for curve in own for step in curve.present}
            absent = [index for index, step in enumerate(STEPS) if step not in there]
            if source == "ours" and absent and any(curve.is_ours for curve in found):
                _cross(axes, at[absent])
                after = " and ".join(str(STEPS[index]) for index in absent)
                where = scenario._replace(backbone=network)
                gaps.append(f"{METHOD_NAMES[method]} on {where} after step {after}")
    titles = [scenario._replace(backbone=name).network.replace("Net", "Net\n") for name in networks]
    axes.set_xticks(range(len(networks)), titles)
    axes.set_xlim(-0.5, len(networks) - 0.5)
    axes.grid(visible=False, axis="x")
    if scenario.ways:
        axes.axhline(
            100 / scenario.ways, label="chance", color="#555555", linewidth=0.8, linestyle=(0, (1, 2))
        )
    return gaps


def _cross(axes: Axes, positions: np.ndarray) -> None:
    """Draw a cross at the bottom where a number is missing."""
    heights = np.full(len(positions), 0.03)
    transform = axes.get_xaxis_transform()
    axes.plot(positions, heights, "x", color="#555555", markersize=4, transform=transform, label="missing")


def valley(eigenvalues: Eigenvalues) -> np.ndarray:
    """Return the Hessian A of f(x) = ½ xᵀ A x."""
    rotation = _rotation()
    return rotation @ np.diag(eigenvalues) @ rotation.T


def descend(hessian: np.ndarray, steps: int = DESCENT_STEPS) -> np.ndarray:
    """Return the points x(0) … x(steps) of x ← x - η A x; the start turns with the valley."""
    points = [_rotation() @ np.array(START)]
    for _ in range(steps):
        points.append(points[-1] - RATE * hessian @ points[-1])
    return np.stack(points)


def _rotation() -> np.ndarray:
    return np.array([[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]])


def _draw_descent(axes: Axes, eigenvalues: Eigenvalues, is_good: bool) -> None:
    """Draw the contours, the path, and its remaining distance to the minimum."""
    hessian = valley(eigenvalues)
    path = descend(hessian)
    x, y = np.meshgrid(np.linspace(-1.15, 1.15, 150), np.linspace(-0.85, 0.85, 120))
    height = 0.5 * (hessian[0, 0] * x**2 + 2 * hessian[0, 1] * x * y + hessian[1, 1] * y**2)
    # The square root spaces contour lines equally along straight lines to the minimum.
    axes.contour(x, y, np.sqrt(height), levels=9, colors="#999999", linewidths=0.6)
    colour, marker = (BLUE, "o") if is_good else (VERMILION, "s")
    axes.plot(path[:, 0], path[:, 1], color=colour, marker=marker, markersize=3.5, linewidth=1.3)
    axes.plot(0, 0, marker="+", color="black", markersize=8, linestyle="none")
    left = np.linalg.norm(path[-1]) / np.linalg.norm(path[0])
    kappa = eigenvalues[1] / eigenvalues[0]
    axes.set_title(f"κ = {kappa:.3g}: {100 * left:.2g} % of the way\nis left after {DESCENT_STEPS} steps")
    axes.set_aspect("equal")
    axes.set(xlabel="parameter 1", ylabel="parameter 2", xticks=[-1, 0, 1], yticks=[-0.5, 0, 0.5])
    axes.grid(visible=False)
