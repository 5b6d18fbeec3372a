"""The outer loss as a node of autograd's graph, with its gradient computed in the forward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from firststep.conditioning import back_to
from firststep.metagradient import MetaGradientResult, TaskReport
from firststep.network import Params


def outer_loss(
    compute: Callable[[Params, Params], MetaGradientResult], params: Params, rule_params: Params
) -> tuple[Tensor, TaskReport]:
    """Return the loss, whose ``backward()`` adds to ``.grad`` of the parameters, and the report.

    Args:
        compute: the meta-gradient as a function of the network's and the rule's parameters.
        params: the network's parameters.
        rule_params: the rule's parameters.
    """
    loss, *report = _OuterLoss.apply(
        compute, tuple(params), tuple(rule_params), *params.values(), *rule_params.values()
    )
    return loss, TaskReport(*report)


def stacked(reports: Sequence[TaskReport]) -> TaskReport:
    """Stack the reports of several tasks into one, whose entries have a leading axis for the tasks."""
    return TaskReport(*(torch.stack(parts) for parts in zip(*reports, strict=True)))


class _OuterLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        compute: Callable[[Params, Params], MetaGradientResult],
        names: tuple[str, ...],
        rule_names: tuple[str, ...],
        *values: Tensor,
    ) -> tuple[Tensor, ...]:
        params = dict(zip(names, values, strict=False))
        rule_params = dict(zip(rule_names, values[len(names) :], strict=True))
        result = compute(params, rule_params)
        ctx.save_for_backward(
            *(result.params[name] for name in names), *(result.rule_params[name] for name in rule_names)
        )
        report = stacked(result.tasks)
        ctx.mark_non_differentiable(*report)
        ctx.set_materialize_grads(False)
        return back_to(result.loss, values[0]), *report

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        if cotangent is None:  # only the report was used
            return (None,) * (3 + len(ctx.saved_tensors))
        return None, None, None, *(cotangent.to(gradient.dtype) * gradient for gradient in ctx.saved_tensors)
