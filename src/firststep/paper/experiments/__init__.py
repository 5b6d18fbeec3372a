"""The registry of experiments."""

from __future__ import annotations

from collections.abc import Callable

from firststep.paper.experiment import Experiment
from firststep.paper.experiments.heads import heads
from firststep.paper.experiments.main_paper import figure1, figure2, figure3, table1, table2, table3, table4
from firststep.paper.experiments.rivals import rivals
from firststep.paper.experiments.supplementary import (
    figure4,
    figure5,
    loss_ablation,
    preconditioners,
    supplement_curves,
    supplement_subsets,
    ways_and_shots,
)
from firststep.utils.registry import Registry

EXPERIMENTS: Registry[Callable[[], Experiment]] = Registry(
    "experiment",
    **{
        "figure1": figure1,
        "table1": table1,
        "figure2": figure2,
        "table2": table2,
        "figure3": figure3,
        "table3": table3,
        "table4": table4,
        "loss-ablation": loss_ablation,
        "ways-and-shots": ways_and_shots,
        "figure4": figure4,
        "preconditioners": preconditioners,
        "figure5": figure5,
        "supplement-curves": supplement_curves,
        "supplement-subsets": supplement_subsets,
        "heads": heads,
        "rivals": rivals,
    },
)
"""Name → function that returns the experiment; the first line of its docstring is its description.

The paper's experiments come first, in its order, then ours.

Examples:
    >>> from firststep.paper import EXPERIMENTS
    >>> list(EXPERIMENTS)
    ['figure1', 'table1', 'figure2', 'table2', 'figure3', 'table3', 'table4', 'loss-ablation',
     'ways-and-shots', 'figure4', 'preconditioners', 'figure5', 'supplement-curves',
     'supplement-subsets', 'heads', 'rivals']
"""
