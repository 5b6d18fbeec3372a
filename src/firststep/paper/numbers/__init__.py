"""The paper's numbers, cell by cell, as its tables print them: accuracy and 95 % half-width in per cent.

Hiller, Harandi and Drummond, "On Enforcing Better Conditioned Meta-Learning for Rapid Few-Shot Adaptation",
NeurIPS 2022. ``conditioned`` is the paper's own method. Apparent misprints are kept: tieredImageNet,
ResNet10, conditioned, 5-shot, step 50 reads 74.42 between two 76.45s.
"""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

from firststep.errors import unknown

NUMBERS = {
    "baseline": "Table 1: MAML as re-implemented and as first reported; miniImageNet, Conv4, 5-way",
    "parameter_subsets": "Table 2: which parameters the loss constrains; CUB, Conv4, 5-way 5-shot",
    "bigger_steps": "Table 3: one larger step at inference; miniImageNet, Conv6, 5-way 5-shot",
    "depths": "Table 4 and supplement: 5 datasets, 4 backbones, 1 and 5 shots, steps 1 to 5",
    "beyond_horizon": "Table 4 and supplement: the same models after 5, 10, 25, 50 and 100 steps",
    "loss_ablation": "supplement: the two losses on miniImageNet's validation set, Conv6, 5-way 5-shot",
    "preconditioners": "supplement: parameters against accuracy; miniImageNet, 5-way 5-shot, 5 steps",
    "ways_and_shots": "supplement: more ways and more shots; miniImageNet, Conv6",
}


def published(name: str) -> pd.DataFrame:
    """Return one of the paper's tables; backbones have the names of ``--backbone``.

    Examples:
        >>> from firststep.paper import published
        >>> published("parameter_subsets").columns.tolist()
        ['constrained', 'step', 'accuracy', 'ci95']
    """
    if name not in NUMBERS:
        raise unknown("table of the paper", name, NUMBERS)
    with files("firststep.paper.numbers").joinpath(f"{name}.csv").open(encoding="utf-8") as file:
        frame = pd.read_csv(file)
    if "backbone" in frame:
        frame["backbone"] = frame["backbone"].str.lower()
    return frame
