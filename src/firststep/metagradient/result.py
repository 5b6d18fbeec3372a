"""The result of a meta-gradient computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from firststep.adaptation import Aux
from firststep.conditioning import classifier_gram, condition_number, float64_device
from firststep.losses import Loss, cross_entropy, first_tensor
from firststep.network import Params
from firststep.task import Targets


class TaskReport(NamedTuple):
    """The losses and condition numbers of one task, detached.

    Examples:
        >>> conditioning = fs.Conditioning()
        >>> result = functional.meta_gradient(learner, [task], steps=2, conditioning=conditioning)
        >>> report = result.tasks[0]
        >>> report.support_losses.shape, report.condition_numbers.shape
        (torch.Size([2]), torch.Size([2]))
    """

    query_loss: Tensor
    """Query loss after the last step."""
    query_accuracy: Tensor
    """Query accuracy after the last step; NaN unless the targets are classes."""
    weighted_query_loss: Tensor
    """Sum over steps of query weight times query loss; equals ``query_loss`` if only the last step counts."""
    conditioning: Tensor
    """Conditioning loss Σ_k w_k c(G(θ(k-1))), without γ; 0 without conditioning."""
    condition_numbers: Tensor
    """λ_max/λ_min at stages 0..K-1, of the constrained subset, else of the last linear layer; NaN if the
    network does not end in one."""
    support_losses: Tensor
    """Mean loss of the support set at stages 0..K-1."""


@dataclass(frozen=True, kw_only=True)
class MetaGradientResult:
    """The gradient of the summed outer loss, and one report per task.

    Examples:
        >>> result = functional.meta_gradient(learner, [task, task], steps=2)
        >>> result.loss.shape, len(result.tasks)
        (torch.Size([]), 2)
    """

    params: Params
    """Gradient with respect to the initial parameters θ(0)."""
    rule_params: Params
    """Gradient with respect to the update rule's parameters."""
    loss: Tensor
    """Outer loss, summed over tasks: query loss + γ · conditioning loss."""
    tasks: list[TaskReport]


@torch.no_grad()
def build_report(
    stages: Sequence[Aux],
    targets: Targets,
    loss: Loss,
    *,
    query_loss: Tensor,
    query_accuracy: Tensor,
    weighted_query_loss: Tensor,
    conditioning: Tensor,
) -> TaskReport:
    """Return the report of a task, detached.

    Args:
        stages: results of the inner steps, at stages 0..K-1.
        targets: targets of the support set.
        loss: loss of the support set.
        query_loss: a field of the report, like all that follow.
        query_accuracy: see :class:`TaskReport`.
        weighted_query_loss: see :class:`TaskReport`.
        conditioning: see :class:`TaskReport`.
    """
    return TaskReport(
        query_loss=query_loss.detach(),
        query_accuracy=query_accuracy,
        weighted_query_loss=weighted_query_loss.detach(),
        conditioning=conditioning.detach(),
        condition_numbers=_condition_numbers(stages, targets, loss),
        support_losses=torch.stack([aux.loss.detach() for aux in stages]),
    )


def _condition_numbers(stages: Sequence[Aux], targets: Targets, loss: Loss) -> Tensor:
    """Return those of the constrained subset if its Gram matrices exist, else of the last linear layer."""
    grams = [aux.gram for aux in stages if aux.gram is not None]
    features = [aux.features for aux in stages if aux.features is not None]
    outputs = [aux.logits for aux in stages]
    if len(grams) == len(stages):
        stacked = torch.stack(grams)
    elif len(features) < len(stages):
        device = float64_device(first_tensor(targets).device)
        return torch.full((len(stages),), torch.nan, dtype=torch.float64, device=device)
    elif loss is cross_entropy:
        stacked = classifier_gram(
            torch.stack(features),
            torch.stack(outputs),
            first_tensor(targets).expand(len(outputs), -1),
            check_finite=False,
        )
    else:
        stacked = torch.stack(
            [loss.gram(phi, output, targets) for phi, output in zip(features, outputs, strict=True)]
        )
    return condition_number(stacked, check_finite=False)
