"""The supplement: condition number of the constrained parameters beside that of all, by subset."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from firststep.paper.figures.canvas import (
    finish,
    in_style,
    log_axis,
    nothing,
    page,
    plain_number,
    say_nothing,
    tidy_grid,
)
from firststep.paper.figures.curves import Log, curves, logs
from firststep.paper.figures.lines import training_line
from firststep.paper.figures.panels import missing_logs, panels, subset_names
from firststep.plotting import line_style

COLUMNS = 4
LINES = {
    "condition_number": ("κ of the constrained parameters", "cls"),
    "condition_number_all": ("κ of all parameters", "all"),
}
"""Quantity → its name, and the parameter subset whose style it has."""


@in_style
def subsets(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw, per scenario, a panel per subset; without the loss, κ is that of the classifier."""
    shown = [panel for panel in panels(curves(accuracies), logs(histories)) if panel.logs]
    if not shown:
        return nothing(scale, note)
    heights = [1.6 * -(-len(panel.logs) // COLUMNS) + 0.3 for panel in shown]
    figure = page(sum(heights))
    areas = figure.subfigures(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    for area, panel in zip(areas, shown, strict=True):
        area.suptitle(f"{panel.scenario}: condition number of the first step, validation tasks", fontsize=9)
        _draw(area, panel.logs)
    return finish(figure, scale, note, missing_logs(shown, subset_names))


def _draw(area: SubFigure, found: Sequence[Log]) -> None:
    columns = min(COLUMNS, len(found))
    rows = -(-len(found) // columns)
    grid = area.subplots(rows, columns, squeeze=False, sharey=True, sharex=True)
    for axes, name, log in zip(grid.flat, subset_names(found), found, strict=False):
        _both(axes, log)
        axes.set_title("none (κ of cls)" if name == "none" else name)
    for axes in grid.flat:
        if axes.lines:
            log_axis(axes, "y", plain_number)
    tidy_grid(grid, len(found))


def _both(axes: Axes, log: Log) -> None:
    for position, (quantity, (text, look)) in enumerate(LINES.items()):
        line = log.line("validation", quantity, 0)
        training_line(axes, line, text, line_style(look), position)
    if not axes.lines:
        say_nothing(axes)
    axes.set(ylabel="condition number κ")
