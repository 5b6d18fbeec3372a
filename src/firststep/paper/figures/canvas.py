"""The canvas of every figure: registry, size, legend, footer, grids and logarithmic axes."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from firststep.plotting import RC, RESOLUTION
from firststep.utils.registry import Registry

Draw = Callable[[pd.DataFrame, pd.DataFrame, str, str], Figure]
"""Accuracies, histories, scale, note → figure"""

WIDTH = 7.2  # inches: two columns of a journal page
SMALL = 6.5  # points
LAST = ("chance", "missing")  # of the legend
NOTHING = "nothing to show yet"
PRINT_RC: dict[Any, Any] = {
    **RC,
    "font.size": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.4,
}


FIGURES: Registry[Draw] = Registry("figure")
"""Name → a function that draws a result. Add your own with ``FIGURES.register("name", draw)``.

Examples:
    >>> from firststep.paper import FIGURES
    >>> "figure3" in FIGURES
    True
"""


def register_figure(name: str) -> Callable[[Draw], Draw]:
    """Return a decorator that registers a figure, drawn whatever matplotlib's current settings are."""

    def register(draw: Draw) -> Draw:
        @functools.wraps(draw)
        def in_style(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
            with mpl.rc_context(PRINT_RC):
                return draw(accuracies, histories, scale, note)

        return FIGURES.register(name, in_style)

    return register


def page(height: float) -> Figure:
    """Return an empty figure of this height in inches."""
    # Ticks may change once panels have their size: the margin leaves space for half a tick label more.
    layout = ConstrainedLayoutEngine(rect=(0, 0, 0.985, 1))
    return Figure(figsize=(WIDTH, height), dpi=RESOLUTION, layout=layout)


def nothing(scale: str, note: str) -> Figure:
    """Return a figure that says that there is nothing to show."""
    figure = page(1.2)
    axes = figure.subplots()
    axes.set_axis_off()
    say_nothing(axes)
    return finish(figure, scale, note)


def say_nothing(axes: Axes) -> None:
    """Write on the axes that there is nothing to show."""
    axes.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
    axes.grid(visible=False)
    axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes, ha="center", va="center", color="#555555")


def finish(figure: Figure, scale: str, note: str, gaps: Sequence[str] = (), legend: str = "") -> Figure:
    """Add one legend above all panels, and below them the scale, the note and what is missing."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(text, handle)
    for last in [text for text in LAST if text in handles]:
        handles[last] = handles.pop(last)
    rows = 0
    if handles:
        columns = max(1, min(len(handles), int(WIDTH * 14 / (max(map(len, handles)) + 7))))
        rows = -(-len(handles) // columns) + bool(legend)
        figure.legend(
            handles.values(),
            handles.keys(),
            title=legend or None,
            loc="outside upper center",
            ncols=columns,
        )
    listed = "; ".join(gaps[:8]) + (f"; and {len(gaps) - 8} more" if len(gaps) > 8 else "")
    said = [f"Scale: {scale or 'not stated'}. {note}".strip(), f"Missing: {listed}." if gaps else ""]
    lines = [line for text in said for line in textwrap.wrap(text, int(WIDTH * 20))]
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=SMALL, color="#333333", parse_math=False)
    figure.set_figheight(figure.get_figheight() + 0.18 * rows + 0.13 * len(lines))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # a second layout could move the panels
    return figure


def tidy_grid(grid: np.ndarray, used: int) -> None:
    """Label the outer axes only, and hide unused panels."""
    columns = grid.shape[1]
    for index, axes in enumerate(grid.flat):
        axes.set_visible(index < used)
        if index % columns:
            axes.set_ylabel("")
        if index + columns < used:
            axes.set_xlabel("")
        else:
            axes.tick_params(labelbottom=True)


def log_axis(axes: Axes, which: Literal["x", "y"], written: Callable[[float], str]) -> None:
    """Make an axis logarithmic, after drawing; a short range has ticks at 1, 2 and 5."""
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    wide = 2000 if which == "x" else 200
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < wide * low else (1,), numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))


def plain_number(value: float) -> str:
    """Format a number: digits below 10,000, a power of ten above."""
    exponent = math.floor(math.log10(value) + 1e-9)
    if exponent < 4:
        return f"{value:g}"
    factor = round(value / 10**exponent)
    return rf"${'' if factor == 1 else f'{factor}·'}10^{{{exponent}}}$"


def count(value: float) -> str:
    """Format a number of parameters: 50k, 2M."""
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k"
