"""How many inner steps to take on a new task, decided at inference time from the support set alone.

The paper promises that a well-conditioned model lets its user choose the number of steps when it is used.
We choose by cross-validation: each fold holds out one sample of every class, adapts to the rest, and takes
the loss of the held-out samples after every number of steps; the number with the lowest loss averaged over
the folds is taken. It uses nothing but the support set and costs ``folds`` more adaptations of ``longest``
steps each. With one sample a class nothing can be held out, and the trained number is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.adaptation.trajectory import iterate_steps
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule
from firststep.task import Inputs, as_samples, map_inputs

MOST_FOLDS = 5
LONGEST_AUTO = 10  # steps that the choice considers: its cost grows with them


@dataclass(frozen=True)
class StepChoice:
    """How many inner steps to take, and the held-out losses that say so.

    Examples:
        >>> choice = meta.choose_steps(support_x, support_y, longest=3)
        >>> choice.losses[choice.steps] == min(choice.losses)
        True
    """

    steps: int
    """The number chosen."""
    losses: tuple[float, ...]
    """Mean held-out loss after 0, 1, 2, ... steps; empty where nothing could be held out."""
    folds: int


def choose_steps(
    model: FunctionalModule,
    rule: Rule,
    params: Params,
    rule_params: Params,
    x: Inputs,
    y: Tensor,
    *,
    trained: int,
    longest: int = LONGEST_AUTO,
) -> StepChoice:
    """Choose between 0..``longest`` steps for this support set; ``trained`` is K of the meta-training.

    Examples:
        >>> choice = functional.choose_steps(model, rule, params, {}, support_x, support_y, trained=2)
        >>> choice.folds, len(choice.losses)
        (2, 11)
    """
    y = as_samples(x, y)
    folds = held_out_folds(y)
    if not folds:
        return StepChoice(trained, (), 0)
    # The folds have read the labels: on an accelerator too their range is checked at no further cost.
    params = model.initial_params(params, y.cpu())
    with model.one_task():
        total = _held_out_losses(model, rule, params, rule_params, x, y, folds, longest)
    if not bool(torch.isfinite(total[0])):
        raise ValueError("the loss of held-out samples is not finite before the first step")
    # NaN would count as the smallest: a number of steps at which adaptation has diverged is never chosen.
    comparable = torch.where(torch.isfinite(total), total, torch.inf)
    return StepChoice(int(comparable.argmin()), tuple(total.tolist()), len(folds))


def _held_out_losses(
    model: FunctionalModule,
    rule: Rule,
    params: Params,
    rule_params: Params,
    x: Inputs,
    y: Tensor,
    folds: list[Tensor],
    longest: int,
) -> Tensor:
    """Mean loss of the held-out samples after 0..``longest`` steps."""
    total = torch.zeros(longest + 1, dtype=torch.float64)
    for held_out in folds:
        rest = ~held_out
        remaining = map_inputs(lambda part, rest=rest: part[rest], x)  # type: ignore[misc]
        adapted = iterate_steps(model, rule, params, rule_params, remaining, y[rest])
        current = params
        for steps in range(longest + 1):
            if steps:
                current, _ = next(adapted)
            with torch.no_grad():
                # The whole support set in one batch, so that batch norm sees what it will see in use.
                logits = model(current, x).logits[held_out]
                total[steps] += F.cross_entropy(logits, y[held_out]).double().cpu() / len(folds)
    return total


def held_out_folds(y: Tensor) -> list[Tensor]:
    """Masks that each hold out one sample of every class; none if a class has but one."""
    indices = [torch.nonzero(y == label).flatten() for label in y.unique()]
    fewest = min(len(samples) for samples in indices)
    if fewest < 2:
        return []
    folds = []
    for fold in range(min(fewest, MOST_FOLDS)):
        mask = torch.zeros_like(y, dtype=torch.bool)
        mask[torch.stack([samples[fold] for samples in indices])] = True
        folds.append(mask)
    return folds
