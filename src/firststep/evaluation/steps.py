"""How many inner steps to take on a new task, decided at inference time from the support set alone.

The paper promises that a well-conditioned model lets its user choose the number of steps when it is used.
We choose by cross-validation: each fold holds out one picture of every class, adapts to the rest, and reads
the loss of the held-out pictures after every number of steps; the number with the lowest loss averaged over
the folds is taken. It looks at nothing but the support set and costs ``folds`` more adaptations of
``longest`` steps each. With one picture a class nothing can be held out, and the trained number is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.adaptation import walk
from firststep.evaluation.trained import Trained
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule

MOST_FOLDS = 5
LONGEST_AUTO = 10  # steps that the choice considers: its cost grows with them


@dataclass(frozen=True)
class StepChoice:
    steps: int
    """The number chosen."""
    losses: tuple[float, ...]
    """Mean held-out loss after 0, 1, 2, ... steps; empty where nothing could be held out."""
    folds: int


def choose_steps(
    model: FunctionalModule,
    rule: Rule,
    params: Params,
    own: Params,
    images: Tensor,
    labels: Tensor,
    *,
    trained: int,
    longest: int,
) -> StepChoice:
    """Choose between 0..``longest`` steps for this support set; ``trained`` is K of the meta-training."""
    folds = held_out_folds(labels)
    if not folds:
        return StepChoice(trained, (), 0)
    total = torch.zeros(longest + 1, dtype=torch.float64)
    for held_out in folds:
        walker = walk(model, rule, params, own, images[~held_out], labels[~held_out])
        current = params
        for steps in range(longest + 1):
            if steps:
                current, _ = next(walker)
            with torch.no_grad():
                # All support pictures in one batch, so that batch norm sees what it will see in use.
                logits = model(current, images).logits[held_out]
                total[steps] += F.cross_entropy(logits, labels[held_out]).double().cpu() / len(folds)
    return StepChoice(int(total.argmin()), tuple(total.tolist()), len(folds))


def choose_for(trained: Trained, rule: Rule, images: Tensor, labels: Tensor, longest: int) -> StepChoice:
    """:func:`choose_steps` for a trained model."""
    return choose_steps(
        trained.setup.model,
        rule,
        trained.params,
        trained.own,
        images,
        labels,
        trained=trained.config.steps,
        longest=longest,
    )


def held_out_folds(labels: Tensor) -> list[Tensor]:
    """Masks that each hold out one sample of every class; none if a class has but one."""
    classes = labels.unique()
    places = [torch.nonzero(labels == c).flatten() for c in classes]
    fewest = min(len(place) for place in places)
    if fewest < 2:
        return []
    folds = []
    for fold in range(min(fewest, MOST_FOLDS)):
        mask = torch.zeros_like(labels, dtype=torch.bool)
        mask[torch.stack([place[fold] for place in places])] = True
        folds.append(mask)
    return folds
