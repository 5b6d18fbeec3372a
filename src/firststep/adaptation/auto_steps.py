"""Choose the number of inner steps for a new task from its support set alone.

The paper promises that the user of a well-conditioned model can choose the number of steps at inference time.
We choose it by cross-validation. Each fold holds out one sample per class, or every fifth sample if the
targets are not classes, and adapts to the rest. The chosen number of steps has the lowest mean loss on the
held-out samples. The cost is ``folds`` adaptations of ``longest`` steps each. With one sample per class
nothing can be held out, and the trained number is used.
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
LONGEST_AUTO = 10  # largest number of steps considered: the cost grows with it


@dataclass(frozen=True)
class StepChoice:
    """The chosen number of inner steps, and the held-out losses behind the choice.

    Examples:
        >>> choice = meta.choose_steps(support_x, support_y, longest=3)
        >>> choice.losses[choice.steps] == min(choice.losses)
        True
    """

    steps: int
    """Chosen number of steps."""
    losses: tuple[float, ...]
    """Mean held-out loss after 0, 1, 2, ... steps; empty if nothing could be held out."""
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
    # The folds have already read the labels, so checking their range costs nothing more, even on a GPU.
    model.check_labels(start.params, *(labels.cpu() for labels in loss.labels(y)))
    with model.one_task():
        total = _held_out_losses(start, x, y, folds, longest)
    if not bool(torch.isfinite(total[0])):
        raise ValueError("the loss of held-out samples is not finite before the first step")
    # argmin would choose NaN: exclude numbers of steps at which adaptation has diverged.
    comparable = torch.where(torch.isfinite(total), total, torch.inf)
    return StepChoice(int(comparable.argmin()), tuple(total.tolist()), len(folds))


def _held_out_losses(start: Learner, x: Inputs, y: Targets, folds: list[Tensor], longest: int) -> Tensor:
    """Return the mean loss of the held-out samples after 0..``longest`` steps."""
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
                # The whole support set as one batch, so that batch norm sees the same batch as in use.
                output = map_inputs(lambda part, mask=held_out: part[mask], start.model(current, x).logits)  # type: ignore[misc]
                total[steps] += start.loss.mean(output, asked[1]).cpu().double() / len(folds)
    return total


def held_out_folds(y: Tensor) -> list[Tensor]:
    """Return masks that each hold out one sample per class; none if a class has only one sample."""
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
    """Return masks that each hold out every fifth sample, or fewer samples if there are fewer."""
    folds = min(len(y), MOST_FOLDS)
    if folds < 2:
        return []
    numbers = torch.arange(len(y), device=y.device)
    return [numbers % folds == fold for fold in range(folds)]
