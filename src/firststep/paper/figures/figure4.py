"""Figure 4: more ways and more shots."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from firststep.paper.figures.canvas import finish, in_style, nothing, page
from firststep.paper.figures.curves import curves
from firststep.paper.figures.lines import over_steps
from firststep.paper.figures.panels import label, method_names, missing, panels

COLUMNS = 4


@in_style
def figure4(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw accuracy over steps 1 to 5 in a panel per task."""
    shown = panels(curves(accuracies[accuracies["step"].between(1, 5)]))
    if not shown:
        return nothing(scale, note)
    rows = -(-len(shown) // COLUMNS)
    columns = min(len(shown), COLUMNS)
    figure = page(1.95 * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    same = len({panel.scenario[:2] for panel in shown}) == 1
    for index, (axes, panel) in enumerate(zip(grid.flat, shown, strict=False)):
        # The legend names what all panels share.
        scenario = panel.scenario._replace(dataset="", backbone="") if same else panel.scenario
        names = method_names(panel.curves)
        labels = [label(*each, scenario) for each in zip(names, panel.curves, strict=True)]
        over_steps(axes, panel.curves, names, labels)
        axes.set_title(str(scenario) if same else f"{scenario.dataset}, {scenario.network}\n{scenario.task}")
        if index % columns:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)
        if index + columns < len(shown):
            axes.set_xlabel("")
    for axes in np.ravel(grid)[len(shown) :]:
        axes.set_axis_off()
    return finish(figure, scale, note, missing(shown, method_names))
