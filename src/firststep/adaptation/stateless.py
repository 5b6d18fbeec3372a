"""Find a rule that is no pure function of its arguments, before it gives a wrong gradient.

The engine computes a step again on the way back. A rule that keeps state between calls, such as momentum in a
closure, then gives another step than the one that was taken, and the meta-gradient is that of no loss.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch
from torch import Tensor

from firststep.adaptation.step import inner_step
from firststep.losses import Loss, cross_entropy, first_tensor
from firststep.network import FunctionalModule, Params, preserved
from firststep.rules import Rule
from firststep.task import Inputs, Targets, map_inputs


def check_stateless(
    model: FunctionalModule,
    rule: Rule,
    params: Mapping[str, Tensor],
    rule_params: Mapping[str, Tensor],
    x: Inputs,
    y: Targets,
    loss: Loss = cross_entropy,
) -> None:
    """Compute the first step twice, once per rule, and refuse a rule whose second step differs.

    A step on other labels comes between: Adam's steps along one gradient are all equal, whatever its state.
    The network draws the same random numbers for all of them. Torch's generators are left as they were.

    Args:
        model: the network.
        rule: the update rule; nothing is computed for one that is known to be stateless.
        params: θ(0) of the task.
        rule_params: the rule's parameters.
        x: the support set.
        y: its targets.
        loss: the loss of the support set.
    """
    device = first_tensor(y).device
    if rule.stateless or device.type == "meta":  # which has no values to compare
        return
    taken: list[Params] = []

    def recorded(*arguments: object) -> object:
        result = rule.update(*arguments)
        taken.append(result if rule.init_state is None else result[0])
        return result

    watched = dataclasses.replace(rule, update=recorded)
    other = _other_targets(y, loss)
    with preserved(device), model.one_task():
        for targets in (y, other, y):
            inner_step(model, watched, params, rule.at_step(rule_params, 0), x, targets, loss=loss)
    if _differ(taken[0], taken[2]):
        raise ValueError(
            f"the rule {rule.name!r} gives different steps for the same gradient: it keeps state between "
            "calls or draws random numbers, but a step is computed more than once. Make `update` depend on "
            "its arguments alone, and keep what it needs besides in rule_params, or in the state that "
            "`init_state` makes"
        )
    rule.remember_stateless()


def _other_targets(y: Targets, loss: Loss) -> Targets:
    for labels in loss.labels(y):
        return (labels + 1) % (labels.max() + 1)
    return map_inputs(lambda part: part.roll(1, 0), y)


def _differ(first: Params, second: Params) -> bool:
    """By more than an accelerator's order of summation explains; NaN in both is no difference."""
    precision = max(torch.finfo(step.dtype).eps for step in first.values()) if first else 0.0
    length = sum(torch.linalg.vector_norm(step).square() for step in first.values())
    apart = sum(torch.linalg.vector_norm(first[name] - second[name]).square() for name in first)
    return bool(apart > precision * length)
