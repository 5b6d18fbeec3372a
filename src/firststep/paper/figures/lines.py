"""Curves on axes: accuracy over steps, and what is logged during training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from firststep.evaluation.figures import step_axis
from firststep.paper.figures.look import line_style, log_axis, plain_number, say_nothing
from firststep.paper.figures.records import Curve, Log


def over_steps(axes: Axes, curves: Sequence[Curve], names: Sequence[str], labels: Sequence[str]) -> None:
    """Test accuracy after each step: runs with their 95 % interval as a band, the paper's with bars."""
    for name, text, curve in zip(names, labels, curves, strict=True):
        if not curve.present:
            continue
        style = line_style(name, curve.is_ours, names)
        if curve.is_ours:
            axes.plot(curve.steps, curve.accuracy, label=text, **style)
            low, high = curve.accuracy - curve.ci95, curve.accuracy + curve.ci95
            axes.fill_between(curve.steps, low, high, color=style["color"], alpha=0.2, linewidth=0)
        else:
            axes.errorbar(
                curve.steps, curve.accuracy, curve.ci95, label=text, capsize=1.5, elinewidth=0.8, **style
            )
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
    """One quantity at one step or stage along the meta-training; condition numbers on a log axis."""
    drawn = False
    for position, (name, text, log) in enumerate(zip(names, labels, logs, strict=True)):
        updates, values = log.line(split, quantity, index)
        if not np.isfinite(values).any():
            continue
        drawn = True
        # Few marks, and not above one another: the line is the data, the mark tells whose it is.
        every = max(1, len(updates) // 6)
        style = line_style(name, True, names)
        axes.plot(updates, values, label=text, markevery=(position % every, every), **style)
    is_accuracy = quantity == "accuracy"
    axes.set(xlabel="meta-updates", ylabel=f"{split} accuracy (%)" if is_accuracy else "condition number κ")
    if not drawn:
        say_nothing(axes)
    elif not is_accuracy:
        log_axis(axes, "y", plain_number)
