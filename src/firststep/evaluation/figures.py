"""Figures from runs and evaluations, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from firststep.evaluation.comparison import distinct_labels
from firststep.evaluation.diagnosis import Spectrum
from firststep.evaluation.evaluation import Evaluation
from firststep.plotting import RC, line_style, line_styles, step_axis

Metrics = list[dict[str, Any]]
Line = tuple[str, dict[str, Any], Metrics]
"""Label, style and training log of a run."""


def comparison_figure(evaluations: Sequence[Evaluation], metrics: Sequence[Metrics]) -> Figure:
    """Accuracy over steps, and two curves of the training where there are training logs.

    Examples:
        >>> from firststep.evaluation import comparison_figure
        >>> figure = comparison_figure([evaluation], [run.metrics()])
        >>> figure.savefig("comparison.png")
    """
    styles = line_styles([evaluation.label for evaluation in evaluations])
    labels = distinct_labels(list(evaluations))
    logged = [line for line in zip(labels, styles, metrics, strict=True) if line[2]]
    columns = 3 if logged else 1
    with mpl.rc_context(RC):
        figure = Figure(figsize=(4.2 * columns, 3.6), layout="constrained")
        axes = figure.subplots(1, columns, squeeze=False)[0]
        _accuracy_over_steps(axes[0], evaluations, labels, styles)
        axes[0].legend(loc="lower right")
        if logged:
            _during_training(axes[1], logged, "validation_accuracy", index=1, factor=100)
            axes[1].set(ylabel="validation accuracy (%)", title="After one step, during training")
            _during_training(axes[2], logged, "validation_condition_number", index=0)
            axes[2].set(ylabel="condition number", title="Condition number during training", yscale="log")
    return figure


def _accuracy_over_steps(
    axes: Axes, evaluations: Sequence[Evaluation], labels: Sequence[str], styles: Sequence[dict[str, Any]]
) -> None:
    """Test accuracy after each inner step with its 95 % interval."""
    ticks: set[int] = set()
    for evaluation, label, style in zip(evaluations, labels, styles, strict=True):
        rows = [row for row in evaluation.rows() if row["step"] != "auto"]
        steps, accuracies, widths = ([row[key] for row in rows] for key in ("step", "accuracy", "ci95"))
        axes.errorbar(steps, accuracies, widths, label=label, capsize=2, **style)
        ticks |= set(steps)
    step_axis(axes, sorted(ticks))
    axes.set(xlabel="inner steps", ylabel="test accuracy (%)", title="Accuracy over adaptation steps")


def _during_training(axes: Axes, logged: Sequence[Line], key: str, *, index: int, factor: float = 1) -> None:
    """One entry of a logged list along the meta-training."""
    for label, style, metrics in logged:
        shown = [entry for entry in metrics if key in entry]
        values = [factor * entry[key][index] for entry in shown]
        axes.plot([entry["update"] for entry in shown], values, label=label, **style)
    axes.set(xlabel="meta-updates")


@mpl.rc_context(RC)
def spectrum_figure(spectra: Sequence[Spectrum]) -> Figure:
    """Eigenvalues relative to the largest: the median over tasks, and the middle half as a band.

    Examples:
        >>> from firststep.evaluation import diagnose, spectrum_figure
        >>> spectra = diagnose(trained.meta.functional, [glyph_task], subsets=["cls"])
        >>> spectrum_figure(spectra).savefig("spectrum.png")
    """
    figure = Figure(figsize=(5.2, 3.8), layout="constrained")
    axes = figure.subplots()
    subsets = [spectrum.subset for spectrum in spectra]
    for spectrum in spectra:
        relative = np.maximum(spectrum.eigenvalues / spectrum.eigenvalues[:, :1], 1e-18)
        low, middle, high = np.percentile(relative, [25, 50, 75], axis=0)
        ranks = np.arange(1, relative.shape[1] + 1)
        style = line_style(spectrum.subset, subsets)
        label = f"{spectrum.subset} (κ = {spectrum.condition_number:.3g}, rank {spectrum.rank:.3g})"
        axes.plot(ranks, middle, label=label, **style)
        axes.fill_between(ranks, low, high, alpha=0.2, color=style["color"], linewidth=0)
    axes.set(
        xlabel="eigenvalue, largest first",
        ylabel="eigenvalue / largest",
        title="Spectrum of the Gram matrix",
        yscale="log",
    )
    axes.legend()
    return figure
