"""Figures that compare runs, evaluations and spectra."""

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
from firststep.evaluation.metrics import Metric
from firststep.plotting import RC, line_style, line_styles, step_axis

Metrics = list[dict[str, Any]]
Line = tuple[str, dict[str, Any], Metrics]
"""(label, style, training log) of a run."""


def comparison_figure(
    evaluations: Sequence[Evaluation], metrics: Sequence[Metrics], *, stacked: bool = False
) -> Figure:
    """Draw accuracy, or the main metric, over steps, and two training curves if there are training logs.

    The legend is above the panels, where it hides no curve. ``stacked`` puts one panel below the other, for
    narrow screens.

    Examples:
        >>> from firststep.evaluation import comparison_figure
        >>> figure = comparison_figure([evaluation], [run.metrics()])
        >>> figure.savefig("comparison.png")
    """
    styles = line_styles([evaluation.label for evaluation in evaluations])
    labels = distinct_labels(list(evaluations))
    logged = [line for line in zip(labels, styles, metrics, strict=True) if line[2]]
    panels = 3 if logged else 1
    rows, columns = (panels, 1) if stacked else (1, panels)
    legend_rows = -(-len(labels) // columns)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(3.5 * columns, 2.9 * rows + 0.2 * legend_rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        _accuracy_over_steps(axes[0], evaluations, labels, styles)
        figure.legend(loc="outside upper center", ncols=columns)
        if logged:
            metric = evaluations[0].main_metric
            key, factor = f"validation_{evaluations[0].main}", 100 if metric.percent else 1
            _during_training(axes[1], logged, key, index=1, factor=factor)
            axes[1].set(ylabel=f"validation {_axis(metric)}", title="After one step, during training")
            _during_training(axes[2], logged, "validation_condition_number", index=0)
            axes[2].set(ylabel="condition number", title="Condition number during training", yscale="log")
    return figure


def _accuracy_over_steps(
    axes: Axes, evaluations: Sequence[Evaluation], labels: Sequence[str], styles: Sequence[dict[str, Any]]
) -> None:
    """Draw the test accuracy after each inner step with its 95 % interval."""
    ticks: set[int] = set()
    for evaluation, label, style in zip(evaluations, labels, styles, strict=True):
        rows = [row for row in evaluation.rows() if row["step"] != "auto"]
        steps, accuracies, widths = ([row[key] for row in rows] for key in ("step", evaluation.main, "ci95"))
        axes.errorbar(steps, accuracies, widths, label=label, capsize=2, **style)
        ticks |= set(steps)
    step_axis(axes, sorted(ticks))
    metric = evaluations[0].main_metric
    title = f"{metric.title[0].upper()}{metric.title[1:]} over adaptation steps"
    axes.set(xlabel="inner steps", ylabel=f"test {_axis(metric)}", title=title)


def _axis(metric: Metric) -> str:
    return f"{metric.title} (%)" if metric.percent else metric.title


def _during_training(axes: Axes, logged: Sequence[Line], key: str, *, index: int, factor: float = 1) -> None:
    """Draw one entry of a logged list over meta-updates."""
    for label, style, metrics in logged:
        shown = [entry for entry in metrics if key in entry]
        values = [factor * entry[key][index] for entry in shown]
        axes.plot([entry["update"] for entry in shown], values, label=label, **style)
    axes.set(xlabel="meta-updates")


@mpl.rc_context(RC)
def spectrum_figure(spectra: Sequence[Spectrum]) -> Figure:
    """Draw eigenvalues relative to the largest: the median over tasks, and the quartiles as a band.

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
