"""The result of a meta-gradient computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from firststep.adaptation import Aux
from firststep.conditioning import classifier_gram, condition_number
from firststep.losses import Loss, cross_entropy, first_tensor
from firststep.network import Params
from firststep.task import Targets


class TaskReport(NamedTuple):
    """The losses and figures of one task; detached tensors.

    Examples:
        >>> conditioning = fs.Conditioning()
        >>> result = functional.meta_gradient(learner, [task], steps=2, conditioning=conditioning)
        >>> report = result.tasks[0]
        >>> report.support_losses.shape, report.condition_numbers.shape
        (torch.Size([2]), torch.Size([2]))
    """

    query_loss: Tensor
    """After the last step."""
    query_accuracy: Tensor
    """After the last step; NaN unless the targets are classes."""
    weighted_query_loss: Tensor
    """Σ_k of the query weights times the query loss after step k: ``query_loss`` if only the last counts."""
    conditioning: Tensor
    """Σ_k w_k c(G(θ(k-1))), without γ; 0 without conditioning."""
    condition_numbers: Tensor
    """λ_max/λ_min at stages 0..K-1, of the constrained subset, or of the last linear layer if none is; NaN if
    the network does not end in one."""
    support_losses: Tensor
    """At stages 0..K-1."""


@dataclass(frozen=True, kw_only=True)
class MetaGradientResult:
    """The gradient of the summed outer loss, and a report for each task.

    Examples:
        >>> result = functional.meta_gradient(learner, [task, task], steps=2)
        >>> result.loss.shape, len(result.tasks)
        (torch.Size([]), 2)
    """

    params: Params
    """With respect to the initial parameters θ(0)."""
    rule_params: Params
    """With respect to the update rule's parameters."""
    loss: Tensor
    """Σ_tasks [query loss + γ · conditioning]."""
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
        targets: those of the support set.
        loss: that of the support set.
        query_loss: as in the report, like all that follow.
        query_accuracy: see there.
        weighted_query_loss: see there.
        conditioning: see there.
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
    """Of the constrained subset where its Gram matrices are there, otherwise of the last linear layer."""
    grams = [aux.gram for aux in stages if aux.gram is not None]
    features = [aux.features for aux in stages if aux.features is not None]
    outputs = [aux.logits for aux in stages]
    if len(grams) == len(stages):
        stacked = torch.stack(grams)
    elif len(features) < len(stages):
        device = first_tensor(targets).device
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
