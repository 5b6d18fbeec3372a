"""The pictures of the paper, drawn from runs and evaluations. Colours are safe for colour-blind readers."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from firststep.evaluation.comparison import distinct_labels
from firststep.evaluation.evaluate import Evaluation
from firststep.utils.files import replacing

# Okabe and Ito's palette, and a marker each, so that grey print works too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
# What all pictures share: light frames and grids that leave the eye to the data.
LOOK: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
}
RESOLUTION = 200
Metrics = list[dict[str, Any]]


def style(index: int) -> dict[str, Any]:
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "markersize": 4,
        "linewidth": 1.6,
    }


def accuracy_over_steps(axes: Axes, evaluations: Sequence[Evaluation]) -> None:
    """Test accuracy after each inner step with its 95 % interval."""
    positions: list[int] = []
    for index, (label, evaluation) in enumerate(
        zip(distinct_labels(list(evaluations)), evaluations, strict=True)
    ):
        m = evaluation.measurement
        axes.errorbar(m.steps, 100 * m.mean(), 100 * m.half_width(), label=label, capsize=2, **style(index))
        positions = sorted({*positions, *m.steps})
    step_axis(axes, positions)
    axes.set(xlabel="inner steps", ylabel="test accuracy (%)", title="Accuracy over adaptation steps")


def step_axis(axes: Axes, steps: Sequence[int]) -> None:
    """A tick at each step (ascending); beyond the horizon, equal room for 0..5 and 5..100."""
    if steps[-1] > 10:
        axes.set_xscale("symlog", linthresh=5)
    axes.set_xticks(steps, [str(step) for step in steps])
    axes.minorticks_off()


def first_step_during_training(axes: Axes, runs: Sequence[tuple[str, Metrics]]) -> None:
    """Validation accuracy after one step, along the meta-training."""
    for index, (label, metrics) in enumerate(runs):
        axes.plot(
            [entry["update"] for entry in metrics],
            [100 * entry["validation_accuracy"][1] for entry in metrics],
            label=label,
            **style(index),
        )
    axes.set(xlabel="meta-updates", ylabel="validation accuracy (%)", title="After one step, during training")


def condition_during_training(axes: Axes, runs: Sequence[tuple[str, Metrics]]) -> None:
    """Condition number on validation support sets before the first step, along the meta-training."""
    for index, (label, metrics) in enumerate(runs):
        axes.plot(
            [entry["update"] for entry in metrics],
            [entry["validation_condition_number"][0] for entry in metrics],
            label=label,
            **style(index),
        )
    axes.set_yscale("log")
    axes.set(xlabel="meta-updates", ylabel="condition number", title="Condition number during training")


def comparison_figure(evaluations: Sequence[Evaluation], metrics: Sequence[Metrics]) -> Figure:
    """The three pictures side by side; the last two only where there are training logs."""
    labelled = [
        (label, entries)
        for label, entries in zip(distinct_labels(list(evaluations)), metrics, strict=True)
        if entries
    ]
    columns = 3 if labelled else 1
    with mpl.rc_context({**LOOK, "font.size": 9}):
        figure = Figure(figsize=(4.2 * columns, 3.6), layout="constrained")
        axes = figure.subplots(1, columns, squeeze=False)[0]
        accuracy_over_steps(axes[0], evaluations)
        if labelled:
            first_step_during_training(axes[1], labelled)
            condition_during_training(axes[2], labelled)
        axes[0].legend(frameon=False, loc="lower right")
    return figure


def save_figure(figure: Figure, path: Path, about: str = "") -> None:
    """PNG, SVG or PDF by the ending; written whole or not at all, and the same bytes for the same figure.

    ``about`` is kept inside the file, as its description.
    """
    kind = path.suffix.lstrip(".") or "png"
    undated: dict[str, dict[str, str | None]] = {
        "png": {"Software": None},
        "svg": {"Date": None},
        "pdf": {"CreationDate": None},
    }
    if about:
        key = "Subject" if kind == "pdf" else "Description"
        undated = {name: {**facts, key: about} for name, facts in undated.items()}
    # The parts of an SVG have names; the salt makes them repeatable.
    with mpl.rc_context({"svg.hashsalt": "firststep"}), replacing(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=RESOLUTION, metadata=undated.get(kind))


def embedded(figure: Figure) -> str:
    """The figure as an <img> that needs no other file."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=RESOLUTION)
    encoded = base64.b64encode(content.getvalue()).decode()
    return f'<img alt="figure" src="data:image/png;base64,{encoded}">'
