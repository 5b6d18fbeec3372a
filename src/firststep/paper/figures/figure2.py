"""Figure 2: accuracy over steps, and first-step accuracy and condition number during training."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from firststep.paper.figures.canvas import finish, in_style, nothing, page
from firststep.paper.figures.curves import curves, logs
from firststep.paper.figures.lines import during_training, over_steps
from firststep.paper.figures.panels import label, method_names, missing, missing_logs, panels


@in_style
def figure2(accuracies: pd.DataFrame, histories: pd.DataFrame, scale: str, note: str) -> Figure:
    """Draw a row of three panels per scenario."""
    shown = panels(curves(accuracies), logs(histories))
    if not shown:
        return nothing(scale, note)
    figure = page(2.35 * len(shown))
    for axes, panel in zip(figure.subplots(len(shown), 3, squeeze=False), shown, strict=True):
        names = method_names(panel.curves)
        labels = [label(*each, panel.scenario) for each in zip(names, panel.curves, strict=True)]
        over_steps(axes[0], panel.curves, names, labels)
        axes[0].set_title(f"(a) {panel.scenario.dataset}, {panel.scenario.network}\n{panel.scenario.task}")
        names = method_names(panel.logs)
        labels = [label(*each, panel.scenario) for each in zip(names, panel.logs, strict=True)]
        during_training(axes[1], panel.logs, names, labels, quantity="accuracy", index=1)
        axes[1].set_title("(b) validation accuracy\nafter one step, in training")
        during_training(
            axes[2], panel.logs, names, labels, split="train", quantity="condition_number", index=0
        )
        axes[2].set_title("(c) condition number of the\nfirst step, training tasks")
    gaps = missing(shown, method_names) + missing_logs(shown, method_names)
    return finish(figure, scale, note, gaps)
