"""The result of a meta-gradient computation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from firststep.conditioning import classifier_gram, condition_number
from firststep.losses import Loss, cross_entropy, first_tensor
from firststep.network import Params
from firststep.task import Targets


class TaskReport(NamedTuple):
    """The losses and figures of one task; detached tensors.

    Examples:
        >>> conditioning = fs.Conditioning()
        >>> result = functional.meta_gradient(model, rule, [task], steps=2, conditioning=conditioning)
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
        >>> result = functional.meta_gradient(model, rule, [task, task], steps=2)
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
def stage_condition_numbers(
    grams: list[Tensor | None],
    features: list[Tensor | None],
    outputs: list[Any],
    targets: Targets,
    loss: Loss,
) -> Tensor:
    """Of the constrained subset where its Gram matrices are there, otherwise of the last linear layer."""
    found = [value for value in features if value is not None]
    if not outputs or (grams[0] is None and len(found) < len(outputs)):
        device = first_tensor(targets).device
        return torch.full((len(outputs),), torch.nan, dtype=torch.float64, device=device)
    if grams[0] is not None:
        stacked = torch.stack([gram for gram in grams if gram is not None])
    elif loss is cross_entropy:
        stacked = classifier_gram(
            torch.stack(found),
            torch.stack(outputs),
            first_tensor(targets).expand(len(outputs), -1),
            check_finite=False,
        )
    else:
        stacked = torch.stack(
            [loss.gram(phi, output, targets) for phi, output in zip(found, outputs, strict=True)]
        )
    return condition_number(stacked, check_finite=False)
