"""Made-up frames for the paper's figures, and what is read back from a figure."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from firststep.paper import FIGURES
from firststep.paper.measurements import HISTORIES, accuracy_columns, tidy

EMPTY = pd.DataFrame()
SCALE = "smoke: 4 updates, 4 filters"
METHODS = (("maml", ""), ("conditioned", "cls"))
SUBSETS = (*METHODS, ("conditioned", "emb"), ("conditioned", "all"))
RIVALS = (*METHODS, ("gap", "none"), ("gap + conditioning", "cls"), ("gap, shared head", "none"))
WAYS_AND_SHOTS = ((5, 1), (5, 5), (10, 5))


def accuracies(
    source: str = "ours",
    dataset: str = "glyphs",
    backbones: tuple[str, ...] = ("conv4",),
    tasks: tuple[tuple[int, int], ...] = ((5, 5),),
    models: tuple[tuple[str, str], ...] = METHODS,
) -> pd.DataFrame:
    """Return numbers that all differ, so that one in the wrong place is seen."""
    rows = [
        {
            "source": source,
            "row": f"{method} {subset}".strip(),
            "dataset": dataset,
            "backbone": backbone,
            "filters": 16,
            "method": method,
            "subset": subset,
            "loss": "variance",
            "ways": ways,
            "shots": shots,
            "step": step,
            "rate_multiplier": 1.0,
            "parameters": 30_000 * (1 + place),
        }
        for place, backbone in enumerate(backbones)
        for ways, shots in tasks
        for method, subset in models
        for step in range(6)
    ]
    frame = pd.DataFrame(rows)
    offset = 7 if source == "paper" else 0
    return frame.assign(
        accuracy=20 + offset + 50 * np.arange(len(frame)) / len(frame), ci95=0.5, condition_number=10.0
    )


def histories(models: tuple[tuple[str, str], ...] = METHODS, updates: int = 4) -> pd.DataFrame:
    known = {"dataset": "glyphs", "backbone": "conv4", "loss": "variance", "ways": 5, "shots": 5}
    rows = [
        {
            **known,
            "row": f"{method} {subset}".strip(),
            "method": method,
            "subset": subset,
            "update": 25 * (update + 1),
            "split": split,
            "quantity": quantity,
            "index": index,
        }
        for method, subset in models
        for split in ("train", "validation")
        for quantity, indices in (("accuracy", 6), ("condition_number", 5), ("condition_number_all", 5))
        for index in range(indices)
        for update in range(updates)
    ]
    frame = pd.DataFrame(rows)
    return frame.assign(value=10.0 + np.arange(len(frame)) % 83)


FULL = {
    "figure1": (
        pd.concat(
            [
                accuracies(source, "cub", ("conv4", "conv6", "resnet10", "resnet18"))
                for source in ("ours", "paper")
            ]
        ),
        EMPTY,
    ),
    "figure2": (pd.concat([accuracies(), accuracies("paper", "cub", ("conv6",))]), histories()),
    "figure3": (
        pd.concat([accuracies(models=SUBSETS), accuracies("paper", "cub", ("conv4",), models=SUBSETS[:3])]),
        histories(SUBSETS),
    ),
    "figure4": (
        pd.concat(
            [accuracies(tasks=WAYS_AND_SHOTS), accuracies("paper", "mini", ("conv6",), WAYS_AND_SHOTS)]
        ),
        EMPTY,
    ),
    "figure5": (
        pd.concat(
            [
                accuracies(source, backbones=("conv4", "conv6"), models=(*METHODS, ("meta-sgd", "")))
                for source in ("ours", "paper")
            ]
        ),
        EMPTY,
    ),
    "supplement": (EMPTY, histories()),
    "subsets": (EMPTY, histories(SUBSETS)),
    "rivals": (accuracies(models=RIVALS), EMPTY),
}


def draw(name: str, frames: tuple[pd.DataFrame, pd.DataFrame], note: str = "A note.") -> Figure:
    tidied = [
        tidy(frame.to_dict("records"), columns)
        for frame, columns in zip(frames, (accuracy_columns(), HISTORIES), strict=True)
    ]
    return FIGURES[name](*tidied, SCALE, note)


@functools.cache
def full(name: str) -> Figure:
    """Draw the figure once, for all tests that only look at it."""
    return draw(name, FULL[name])


def footer(figure: Figure) -> str:
    return " ".join(figure.get_supxlabel().split())


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for each in figure.legends for text in each.get_texts()]


def axes_of(figure: Figure, title: str) -> Axes:
    """Return the panel whose title contains the words."""
    found = [axes for axes in figure.axes if title in " ".join(axes.get_title().split())]
    assert len(found) == 1, [axes.get_title() for axes in figure.axes]
    return found[0]


def numbers(line: Line2D) -> list[float]:
    return [float(value) for value in np.asarray(line.get_ydata(), dtype=float)]


def line(axes: Axes, label: str) -> list[float]:
    """Return the numbers of a labelled line, with or without error bars."""
    handles, labels = axes.get_legend_handles_labels()
    found = handles[labels.index(label)]
    return numbers(found if isinstance(found, Line2D) else found.lines[0])


def values(frame: pd.DataFrame, **where: object) -> list[float]:
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame["accuracy" if "accuracy" in frame else "value"].tolist()
