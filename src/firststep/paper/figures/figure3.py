"""Figure 3: conditioning a subset of the parameters against all of them."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from firststep.paper.figures.canvas import finish, in_style, nothing, page
from firststep.paper.figures.curves import curves, logs
from firststep.paper.figures.lines import during_training, over_steps
from firststep.paper.figures.panels import missing, missing_logs, panels, subset_names


@in_style
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
        top = ["ours", "paper"] if paper else ["ours", "ours"]
        axes = part.subplot_mosaic([top, ["subset", "all"]])
        if paper:
            axes["paper"].sharey(axes["ours"])
        for place, who, own in (("ours", "run here", ours), ("paper", "paper", paper)):
            if place in axes:
                over_steps(axes[place], own, subset_names(own), subset_names(own))
                axes[place].set_title(f"{who}: {own[0].scenario if own else panel.scenario}")
        names = subset_names(panel.logs)
        for place, quantity, of in (
            ("subset", "condition_number", "the constrained parameters"),
            ("all", "condition_number_all", "all parameters"),
        ):
            during_training(axes[place], panel.logs, names, names, quantity=quantity, index=0)
            axes[place].set_title(f"κ of {of}, in training")
    gaps = missing(shown, subset_names) + missing_logs(shown, subset_names)
    return finish(figure, scale, note, gaps, legend="parameters that the loss constrains")
