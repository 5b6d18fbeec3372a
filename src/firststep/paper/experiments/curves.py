"""What happens during training: Figure 2 and the supplement's curves."""

from __future__ import annotations

from dataclasses import replace

from firststep.paper.experiment import Experiment, published_cells, twins, within
from firststep.paper.numbers import published


def figure2() -> Experiment:
    """Figure 2: accuracy over steps; step-1 validation accuracy and condition number during training"""
    depths = published("depths")
    shown = depths[
        (depths["dataset"] == "mini-imagenet") & (depths["backbone"] == "conv6") & (depths["shots"] == 5)
    ]
    return Experiment(
        name="figure2",
        title="Figure 2: test accuracy over steps, and training, Conv6, 5-way 5-shot",
        rows=tuple(twins("", (within(),), "mini-imagenet", "conv6")),
        paper=published_cells(shown, lambda r: r["method"]),
        figure="figure2",
    )


def supplement_curves() -> Experiment:
    """Supplement: accuracy by step and condition number by stage, on both splits, during training"""
    return replace(
        figure2(),
        name="supplement-curves",
        title="Supplement: accuracy by step, condition number by stage, Conv6, 5-way 5-shot",
        figure="supplement",
    )
