"""Figures of curves: Figures 2, 3 and 4, and the supplement's curves during training."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from firststep.paper.figures.canvas import (
    finish,
    log_axis,
    nothing,
    page,
    plain_number,
    register_figure,
    say_nothing,
    tidy_grid,
)
from firststep.paper.figures.lines import during_training, over_steps, training_line
from firststep.paper.figures.models import (
    Curve,
    Log,
    Scenario,
    curves,
    label,
    logs,
    method_names,
    missing,
    missing_logs,
    panels,
    subset_names,
)
from firststep.plotting import line_style

SPLITS = ("train", "validation")
KAPPAS = {
    "condition_number": ("κ of the constrained parameters", "cls"),
    "condition_number_all": ("κ of all parameters", "all"),
}
"""Quantity → its name, and the parameter subset whose style it has."""


def _names(items: Sequence[Curve | Log], scenario: Scenario) -> tuple[list[str], list[str]]:
    """Return the names of the models, and their texts in the legend of a panel about the scenario."""
    names = method_names(items)
    return names, [label(name, item, scenario) for name, item in zip(names, items, strict=True)]


@register_figure("figure2")
def figure2(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw, per scenario, accuracy over steps, and first-step accuracy and κ during training."""
    shown = panels(curves(accuracies), logs(histories))
    if not shown:
        return nothing(scale, note)
    figure = page(2.35 * len(shown))
    for axes, panel in zip(figure.subplots(len(shown), 3, squeeze=False), shown, strict=True):
        over_steps(axes[0], panel.curves, *_names(panel.curves, panel.scenario))
        axes[0].set_title(f"(a) {panel.scenario.dataset}, {panel.scenario.network}\n{panel.scenario.task}")
        models = panel.logs, *_names(panel.logs, panel.scenario)
        during_training(axes[1], *models, quantity="accuracy", index=1)
        axes[1].set_title("(b) validation accuracy\nafter one step, in training")
        during_training(axes[2], *models, split="train", quantity="condition_number", index=0)
        axes[2].set_title("(c) condition number of the\nfirst step, training tasks")
    return finish(figure, scale, note, missing(shown, method_names) + missing_logs(shown, method_names))


@register_figure("figure3")
def figure3(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw, per scenario, accuracies here and in the paper, and κ of the subset and of all parameters."""
    shown = panels(curves(accuracies), logs(histories))
    if not shown:
        return nothing(scale, note)
    figure = page(4.6 * len(shown))
    for part, panel in zip(figure.subfigures(len(shown), 1, squeeze=False)[:, 0], shown, strict=True):
        ours = [curve for curve in panel.curves if curve.is_ours]
        paper = [curve for curve in panel.curves if not curve.is_ours]
        # Without the paper's numbers, ours fill the row.
        axes = part.subplot_mosaic([["ours", "paper" if paper else "ours"], list(KAPPAS)])
        if paper:
            axes["paper"].sharey(axes["ours"])
        for place, who, own in (("ours", "run here", ours), ("paper", "paper", paper)):
            if place in axes:
                over_steps(axes[place], own, subset_names(own), subset_names(own))
                axes[place].set_title(f"{who}: {own[0].scenario if own else panel.scenario}")
        names = subset_names(panel.logs)
        for quantity, (text, _) in KAPPAS.items():
            during_training(axes[quantity], panel.logs, names, names, quantity=quantity, index=0)
            axes[quantity].set_title(f"{text}, in training")
    gaps = missing(shown, subset_names) + missing_logs(shown, subset_names)
    return finish(figure, scale, note, gaps, legend="parameters that the loss constrains")


@register_figure("figure4")
def figure4(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw accuracy over steps 1 to 5 in a panel per number of ways and shots."""
    shown = panels(curves(accuracies[accuracies["step"].between(1, 5)]))
    if not shown:
        return nothing(scale, note)
    columns = min(len(shown), 4)
    rows = -(-len(shown) // columns)
    figure = page(1.95 * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    same = len({panel.scenario[:2] for panel in shown}) == 1
    for axes, panel in zip(grid.flat, shown, strict=False):
        # The legend names what all panels share.
        scenario = panel.scenario._replace(dataset="", backbone="") if same else panel.scenario
        over_steps(axes, panel.curves, *_names(panel.curves, scenario))
        axes.set_title(str(scenario) if same else f"{scenario.dataset}, {scenario.network}\n{scenario.task}")
    tidy_grid(grid, len(shown))
    return finish(figure, scale, note, missing(shown, method_names))


def _areas(figure: Figure, heights: Sequence[float]) -> list[SubFigure]:
    return list(figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0])


@register_figure("supplement")
def supplement(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw, per scenario, validation accuracy after every step, and κ of every stage on both splits."""
    shown = panels(curves(accuracies), logs(histories))
    found = [
        [log for log in p.logs if log.method != "conditioned" or log.subset in ("", "cls")] for p in shown
    ]
    found = [models for models in found if models]
    if not found:
        return nothing(scale, note)
    steps = [_indices(models, "accuracy", SPLITS[1:]) for models in found]
    heights = [height for own in steps for height in (1.6 * -(-len(own) // 3) + 0.3, 3.4)]
    figure = page(sum(heights))
    areas = _areas(figure, heights)
    for models, own, above, below in zip(found, steps, areas[::2], areas[1::2], strict=True):
        _draw_steps(above, models, own)
        _draw_stages(below, models)
    return finish(figure, scale, note, missing_logs(shown, method_names))


def _indices(models: Sequence[Log], quantity: str, splits: Sequence[str]) -> list[int]:
    found = (log.indices(split, quantity) for log in models for split in splits)
    return sorted(set().union(*found)) or [0]


def _draw_steps(area: SubFigure, models: Sequence[Log], steps: Sequence[int]) -> None:
    """Draw validation accuracy in a panel per step."""
    scenario = models[0].scenario
    area.suptitle(f"{scenario}: validation accuracy during training", fontsize=9)
    grid = area.subplots(-(-len(steps) // 3), 3, squeeze=False, sharey=True, sharex=True)
    for axes, step in zip(grid.flat, steps, strict=False):
        during_training(axes, models, *_names(models, scenario), quantity="accuracy", index=step)
        axes.set(title=f"after {step} step{'' if step == 1 else 's'}", ylabel="accuracy (%)")
    tidy_grid(grid, len(steps))


def _draw_stages(area: SubFigure, models: Sequence[Log]) -> None:
    """Draw the condition number in a row per split and a column per stage."""
    scenario, quantity = models[0].scenario, "condition_number"
    stages = _indices(models, quantity, SPLITS)
    area.suptitle(f"{scenario}: condition number κ of support sets during training", fontsize=9)
    grid = area.subplots(len(SPLITS), len(stages), squeeze=False, sharey=True, sharex=True)
    for row, split in zip(grid, SPLITS, strict=True):
        for axes, stage in zip(row, stages, strict=True):
            names = _names(models, scenario)
            during_training(axes, models, *names, split=split, quantity=quantity, index=stage)
            axes.set_title(f"{split}, stage {stage}")
    tidy_grid(grid, grid.size)


@register_figure("subsets")
def subsets(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw, per scenario and subset, κ of the subset and of all; without the loss, κ is of the classifier."""
    shown = [panel for panel in panels(curves(accuracies), logs(histories)) if panel.logs]
    if not shown:
        return nothing(scale, note)
    heights = [1.6 * -(-len(panel.logs) // 4) + 0.3 for panel in shown]
    figure = page(sum(heights))
    for area, panel in zip(_areas(figure, heights), shown, strict=True):
        area.suptitle(f"{panel.scenario}: condition number of the first step, validation tasks", fontsize=9)
        columns = min(4, len(panel.logs))
        shape = -(-len(panel.logs) // columns), columns
        grid = area.subplots(*shape, squeeze=False, sharey=True, sharex=True)
        for axes, name, log in zip(grid.flat, subset_names(panel.logs), panel.logs, strict=False):
            _draw_both(axes, log)
            axes.set_title("none (κ of cls)" if name == "none" else name)
        for axes in grid.flat:
            if axes.lines:
                log_axis(axes, "y", plain_number)
        tidy_grid(grid, len(panel.logs))
    return finish(figure, scale, note, missing_logs(shown, subset_names))


def _draw_both(axes: Axes, log: Log) -> None:
    for position, (quantity, (text, look)) in enumerate(KAPPAS.items()):
        updates, values = (log.values(column, "validation", quantity, 0) for column in ("update", "value"))
        training_line(axes, updates, values, text, line_style(look), position)
    if not axes.lines:
        say_nothing(axes)
    axes.set(ylabel="condition number κ")
