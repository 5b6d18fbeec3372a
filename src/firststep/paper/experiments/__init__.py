"""The experiments by name, each a function whose docstring says what it is. New ones are tested at once."""

from __future__ import annotations

from collections.abc import Callable

from firststep.errors import unknown
from firststep.paper.experiment import Experiment
from firststep.paper.experiments.baseline import table1
from firststep.paper.experiments.bigger_steps import table3
from firststep.paper.experiments.curves import figure2, supplement_curves
from firststep.paper.experiments.depths import figure1, table4
from firststep.paper.experiments.loss_ablation import loss_ablation
from firststep.paper.experiments.parameter_counts import figure5, preconditioners
from firststep.paper.experiments.rivals import rivals_glyphs
from firststep.paper.experiments.subsets import figure3, supplement_subsets, table2
from firststep.paper.experiments.ways_and_shots import figure4, ways_and_shots

EXPERIMENTS: dict[str, Callable[[], Experiment]] = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "table4": table4,
    "loss-ablation": loss_ablation,
    "ways-and-shots": ways_and_shots,
    "preconditioners": preconditioners,
    "figure1": figure1,
    "figure2": figure2,
    "figure3": figure3,
    "figure4": figure4,
    "figure5": figure5,
    "supplement-curves": supplement_curves,
    "supplement-subsets": supplement_subsets,
    "rivals-glyphs": rivals_glyphs,
}


def experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]()
