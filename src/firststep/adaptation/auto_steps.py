"""How many inner steps to take on a new task, decided at inference time from the support set alone.

The paper promises that a well-conditioned model lets its user choose the number of steps when it is used.
We choose by cross-validation: each fold holds out one sample of every class, or every fifth sample where the
targets are no classes, adapts to the rest, and takes the loss of the held-out samples after every number of
steps; the number with the lowest loss averaged over the folds is taken. It uses nothing but the support set
and costs ``folds`` more adaptations of ``longest`` steps each. With one sample a class nothing can be held
out, and the trained number is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from firststep.adaptation.learner import Learner
from firststep.adaptation.trajectory import start_task, steps_from
from firststep.losses import first_tensor
from firststep.task import Inputs, Targets, as_samples, map_inputs

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
    learner: Learner, x: Inputs, y: Targets, *, trained: int, longest: int = LONGEST_AUTO
) -> StepChoice:
    """Choose between 0..``longest`` steps for this support set; ``trained`` is K of the meta-training.

    Both the inner steps and the held-out samples use the learner's loss.

    Examples:
        >>> choice = functional.choose_steps(learner, support_x, support_y, trained=2)
        >>> choice.folds, len(choice.losses)
        (2, 11)
    """
    model, loss = learner.model, learner.loss
    y = as_samples(x, y, as_target=loss.as_target)
    folds = held_out_folds(*loss.labels(y)) if loss.kind == "classes" else _every_fifth(first_tensor(y))
    if not folds:
        return StepChoice(trained, (), 0)
    start = start_task(learner, x, y)
    # The folds have read the labels: on an accelerator too their range is checked at no further cost.
    model.check_labels(start.params, *(labels.cpu() for labels in loss.labels(y)))
    with model.one_task():
        total = _held_out_losses(start, x, y, folds, longest)
    if not bool(torch.isfinite(total[0])):
        raise ValueError("the loss of held-out samples is not finite before the first step")
    # NaN would count as the smallest: a number of steps at which adaptation has diverged is never chosen.
    comparable = torch.where(torch.isfinite(total), total, torch.inf)
    return StepChoice(int(comparable.argmin()), tuple(total.tolist()), len(folds))


def _held_out_losses(start: Learner, x: Inputs, y: Targets, folds: list[Tensor], longest: int) -> Tensor:
    """Mean loss of the held-out samples after 0..``longest`` steps."""
    total = torch.zeros(longest + 1, dtype=torch.float64)
    for held_out in folds:
        support, asked = (
            [map_inputs(lambda part, mask=mask: part[mask], each) for each in (x, y)]  # type: ignore[misc]
            for mask in (~held_out, held_out)
        )
        adapted = steps_from(start, *support)
        current = start.params
        for steps in range(longest + 1):
            if steps:
                current, _ = next(adapted)
            with torch.no_grad():
                # The whole support set in one batch, so that batch norm sees what it will see in use.
                output = map_inputs(lambda part, mask=held_out: part[mask], start.model(current, x).logits)  # type: ignore[misc]
                total[steps] += start.loss.mean(output, asked[1]).double().cpu() / len(folds)
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


def _every_fifth(y: Tensor) -> list[Tensor]:
    """Masks that each hold out every fifth sample, or fewer where there are fewer; none of one sample."""
    folds = min(len(y), MOST_FOLDS)
    if folds < 2:
        return []
    numbers = torch.arange(len(y), device=y.device)
    return [numbers % folds == fold for fold in range(folds)]
