"""The confusion matrix as a figure."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.figure import Figure

from firststep.evaluation.confusion import Confusion
from firststep.plotting import RC

_MOST_NUMBERS = 30  # with more classes, numbers in cells are too small to read


def confusion_figure(confusion: Confusion) -> Figure:
    """Draw true classes in rows and predicted classes in columns; darkness is the fraction of the row.

    Examples:
        >>> from firststep.evaluation import Confusion, confusion_figure
        >>> confusion_figure(Confusion.of(["cat", "dog"], [0, 0, 1], [0, 1, 1])).savefig("confusion.png")
    """
    classes = len(confusion.classes)
    side = min(3.0 + 0.35 * classes, 16.0)
    shares = confusion.counts / confusion.counts.sum(1, keepdims=True).clip(1)
    # Escape "$": matplotlib would read it as the start of a formula.
    names = [name.encode("utf-8", "replace").decode().replace("$", r"\$") for name in confusion.classes]
    with mpl.rc_context({**RC, "axes.grid": False}):
        figure = Figure(figsize=(side, side), layout="constrained")
        axes = figure.subplots()
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        axes.set_xticks(range(classes), names, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(classes), names)
        if classes <= _MOST_NUMBERS:
            for row, column in zip(*confusion.counts.nonzero(), strict=True):
                colour = "white" if shares[row, column] > 0.6 else "black"
                number = str(confusion.counts[row, column])
                axes.text(column, row, number, ha="center", va="center", color=colour)
        axes.set(
            xlabel="predicted",
            ylabel="true",
            title=f"{100 * confusion.accuracy:.1f} % of {confusion.total} right",
        )
    return figure
