"""Draw curves on axes: accuracy over steps, and training logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from firststep.paper.figures.canvas import log_axis, plain_number, say_nothing
from firststep.paper.figures.models import Curve, Log
from firststep.plotting import line_style, step_axis

PER_CENT = (0.0, 100.0)
MANY = 200
"""A line with more points than this is drawn with its running median."""
WINDOW = 25
"""Number of points in the running median."""


def over_steps(axes: Axes, curves: Sequence[Curve], names: Sequence[str], labels: Sequence[str]) -> None:
    """Draw test accuracy over steps: 95 % intervals are bands for runs and bars for the paper."""
    for name, text, curve in zip(names, labels, curves, strict=True):
        if not curve.present:
            continue
        style = line_style(name, names, hollow=not curve.is_ours)
        if curve.is_ours:
            axes.plot(curve.steps, curve.accuracy, label=text, **style)
            ends = curve.accuracy - curve.ci95, curve.accuracy + curve.ci95
            _band(axes, curve.steps, ends, PER_CENT, style["color"])
        else:
            bars: dict[str, Any] = {"capsize": 1.5, "elinewidth": 0.8}
            axes.errorbar(curve.steps, curve.accuracy, curve.ci95, label=text, **bars, **style)
    steps = sorted({step for curve in curves for step in curve.present})
    if steps:
        step_axis(axes, steps)
    else:
        say_nothing(axes)
    axes.set(xlabel="inner steps", ylabel="test accuracy (%)")


def during_training(
    axes: Axes,
    logs: Sequence[Log],
    names: Sequence[str],
    labels: Sequence[str],
    *,
    split: str = "validation",
    quantity: str,
    index: int,
) -> None:
    """Draw one quantity at one step or stage during training; condition numbers on a log axis."""
    is_accuracy = quantity == "accuracy"
    where = (split, quantity, index)
    values = [log.values("value", *where) for log in logs]
    # Bands of few seeds can be huge: clip them at 1, the least condition number, and 10 times the largest.
    largest = np.fmax.reduce([1.0, *np.concatenate([[], *values])])
    limits = PER_CENT if is_accuracy else (1.0, 10 * largest)
    for position, (name, text, log, value) in enumerate(zip(names, labels, logs, values, strict=True)):
        style = line_style(name, names)
        updates, low, high = (log.values(column, *where) for column in ("update", "low", "high"))
        if np.isfinite(low).any():
            _band(axes, updates, (low, high), limits, style["color"])
        training_line(axes, updates, value, text, style, position)
    axes.set(ylabel=f"{split} accuracy (%)" if is_accuracy else "condition number κ")
    if axes.lines and not is_accuracy:
        log_axis(axes, "y", plain_number)
    elif not axes.lines:
        say_nothing(axes)
        axes.set(xlabel="meta-updates")


def _band(
    axes: Axes, x: np.ndarray, ends: tuple[np.ndarray, np.ndarray], limits: tuple[float, float], color: str
) -> None:
    """Draw an interval around a line, clipped to the limits: over few seeds it can exceed them."""
    low, high = np.clip(ends, *limits)
    axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)


def training_line(
    axes: Axes, updates: np.ndarray, values: np.ndarray, text: str, style: dict[str, Any], position: int
) -> None:
    """Draw one line over meta-updates; a long one is faint, under its running median."""
    if not np.isfinite(values).any():
        return
    axes.set(xlabel="meta-updates")
    if len(values) > MANY:
        axes.plot(updates, values, color=style["color"], linewidth=0.5, alpha=0.35)
        medians = pd.Series(values).rolling(WINDOW, center=True, min_periods=1).median().to_numpy()
        values = np.where(np.isfinite(values), medians, np.nan)  # gaps stay gaps
        axes.set(xlabel=f"meta-updates\n(bold: median of {WINDOW})")
    # Few markers, shifted between lines so that they do not cover each other.
    every = max(1, len(updates) // 6)
    axes.plot(updates, values, label=text, markevery=(position * every // 3 % every, every), **style)
