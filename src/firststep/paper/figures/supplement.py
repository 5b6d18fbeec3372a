"""The supplement: every step and every stage along the meta-training, and the subsets' curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from firststep.paper.figures.canvas import finish, in_style, nothing, page, say_nothing
from firststep.paper.figures.curves import Log, curves, logs
from firststep.paper.figures.lines import during_training, training_line
from firststep.paper.figures.panels import label, method_names, missing_logs, panels, subset_names
from firststep.plotting import MARKERS

COLUMNS = {"steps": 3, "stages": 5, "subsets": 4}
Part = tuple[float, Callable[[SubFigure], None]]
"""Height in inches, and what draws it."""


@in_style
def supplement(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """For each scenario: accuracy of every step, κ of every stage on both splits, subsets where there are."""
    shown = panels(curves(accuracies), logs(histories))
    parts: list[Part] = []
    for panel in shown:
        default = [log for log in panel.logs if log.method != "conditioned" or log.subset in ("", "cls")]
        title = str(panel.scenario)
        parts += [_steps(title, default), _stages(title, default)] if default else []
        parts += [_subsets(title, panel.logs)] if len(set(subset_names(panel.logs))) > 2 else []
    if not parts:
        return nothing(scale, note)
    heights = [height for height, _ in parts]
    figure = page(sum(heights))
    rooms = figure.subfigures(len(parts), 1, squeeze=False, height_ratios=heights)[:, 0]
    for room, (_, draw) in zip(rooms, parts, strict=True):
        draw(room)
    several = any(len(set(subset_names(panel.logs))) > 2 for panel in shown)
    return finish(figure, scale, note, missing_logs(shown, subset_names if several else method_names))


def _names(found: Sequence[Log]) -> tuple[list[str], list[str]]:
    names = method_names(found)
    return names, [label(name, log, log.scenario) for name, log in zip(names, found, strict=True)]


def _steps(title: str, found: Sequence[Log]) -> Part:
    """Validation accuracy after each step, a panel for each."""
    steps = sorted(set().union(*(log.indices("validation", "accuracy") for log in found))) or [0]
    columns = COLUMNS["steps"]
    rows = -(-len(steps) // columns)

    def draw(room: SubFigure) -> None:
        room.suptitle(f"{title}: validation accuracy during training", fontsize=9)
        grid = room.subplots(rows, columns, squeeze=False, sharey=True, sharex=True)
        for axes, step in zip(grid.flat, steps, strict=False):
            during_training(axes, found, *_names(found), quantity="accuracy", index=step)
            axes.set(title=f"after {step} step{'' if step == 1 else 's'}", ylabel="accuracy (%)")
        _tidy(grid, len(steps))

    return 1.6 * rows + 0.3, draw


def _stages(title: str, found: Sequence[Log]) -> Part:
    """Condition number at each stage: a row for each split, a column for each stage."""
    splits = ("train", "validation")
    stages = sorted(
        set().union(*(log.indices(split, "condition_number") for log in found for split in splits))
    ) or [0]

    def draw(room: SubFigure) -> None:
        room.suptitle(f"{title}: condition number κ of support sets during training", fontsize=9)
        grid = room.subplots(len(splits), len(stages), squeeze=False, sharey=True, sharex=True)
        for row, split in zip(grid, splits, strict=True):
            for axes, stage in zip(row, stages, strict=True):
                during_training(
                    axes, found, *_names(found), split=split, quantity="condition_number", index=stage
                )
                axes.set_title(f"{split}, stage {stage}")
        _tidy(grid, grid.size)

    return 3.4, draw


def _subsets(title: str, found: Sequence[Log]) -> Part:
    """Validation accuracy after all steps of a run in one panel, a panel for each subset."""
    columns = min(COLUMNS["subsets"], len(found))
    rows = -(-len(found) // columns)

    def draw(room: SubFigure) -> None:
        room.suptitle(f"{title}: validation accuracy by constrained parameters", fontsize=9)
        grid = room.subplots(rows, columns, squeeze=False, sharey=True, sharex=True)
        for axes, name, log in zip(grid.flat, subset_names(found), found, strict=False):
            _all_steps(axes, log)
            axes.set_title(name)
        _tidy(grid, len(found))

    return 1.6 * rows + 0.3, draw


def _all_steps(axes: Axes, log: Log) -> None:
    """Later steps are lighter, in colour as in grey."""
    steps = sorted(log.indices("validation", "accuracy"))
    for step, colour in zip(steps, mpl.colormaps["cividis"](np.linspace(0, 0.85, len(steps))), strict=True):
        style = {"color": colour, "marker": MARKERS[step % len(MARKERS)], "markersize": 3, "linewidth": 1.2}
        training_line(axes, log.line("validation", "accuracy", step), f"step {step}", style, step)
    if not axes.lines:
        say_nothing(axes)
    axes.set(ylabel="accuracy (%)")


def _tidy(grid: np.ndarray, used: int) -> None:
    """Axis labels at the edge only; unused panels vanish and the one above shows its ticks."""
    columns = grid.shape[1]
    for index, axes in enumerate(grid.flat):
        axes.set_visible(index < used)
        if index % columns:
            axes.set_ylabel("")
        if index + columns < used:
            axes.set_xlabel("")
        else:
            axes.tick_params(labelbottom=True)
