"""The supplement: accuracy of every step and κ of every stage during training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.figure import Figure, SubFigure

from firststep.paper.figures.canvas import finish, in_style, nothing, page, tidy_grid
from firststep.paper.figures.curves import Log, curves, logs
from firststep.paper.figures.lines import during_training
from firststep.paper.figures.panels import label, method_names, missing_logs, panels

COLUMNS = 3
Part = tuple[float, Callable[[SubFigure], None]]
"""Height in inches, and the function that draws it."""


@in_style
def supplement(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw, per scenario, validation accuracy after every step, and κ of every stage on both splits."""
    shown = panels(curves(accuracies), logs(histories))
    parts: list[Part] = []
    for panel in shown:
        default = [log for log in panel.logs if log.method != "conditioned" or log.subset in ("", "cls")]
        title = str(panel.scenario)
        parts += [_steps(title, default), _stages(title, default)] if default else []
    if not parts:
        return nothing(scale, note)
    heights = [height for height, _ in parts]
    figure = page(sum(heights))
    areas = figure.subfigures(len(parts), 1, squeeze=False, height_ratios=heights)[:, 0]
    for area, (_, draw) in zip(areas, parts, strict=True):
        draw(area)
    return finish(figure, scale, note, missing_logs(shown, method_names))


def _names(found: Sequence[Log]) -> tuple[list[str], list[str]]:
    names = method_names(found)
    return names, [label(name, log, log.scenario) for name, log in zip(names, found, strict=True)]


def _steps(title: str, found: Sequence[Log]) -> Part:
    """Return a part with a panel per step: validation accuracy."""
    steps = sorted(set().union(*(log.indices("validation", "accuracy") for log in found))) or [0]
    rows = -(-len(steps) // COLUMNS)

    def draw(area: SubFigure) -> None:
        area.suptitle(f"{title}: validation accuracy during training", fontsize=9)
        grid = area.subplots(rows, COLUMNS, squeeze=False, sharey=True, sharex=True)
        for axes, step in zip(grid.flat, steps, strict=False):
            during_training(axes, found, *_names(found), quantity="accuracy", index=step)
            axes.set(title=f"after {step} step{'' if step == 1 else 's'}", ylabel="accuracy (%)")
        tidy_grid(grid, len(steps))

    return 1.6 * rows + 0.3, draw


def _stages(title: str, found: Sequence[Log]) -> Part:
    """Return a part with a row per split and a column per stage: condition number."""
    splits = ("train", "validation")
    stages = sorted(
        set().union(*(log.indices(split, "condition_number") for log in found for split in splits))
    ) or [0]

    def draw(area: SubFigure) -> None:
        area.suptitle(f"{title}: condition number κ of support sets during training", fontsize=9)
        grid = area.subplots(len(splits), len(stages), squeeze=False, sharey=True, sharex=True)
        for row, split in zip(grid, splits, strict=True):
            for axes, stage in zip(row, stages, strict=True):
                during_training(
                    axes, found, *_names(found), split=split, quantity="condition_number", index=stage
                )
                axes.set_title(f"{split}, stage {stage}")
        tidy_grid(grid, grid.size)

    return 3.4, draw
