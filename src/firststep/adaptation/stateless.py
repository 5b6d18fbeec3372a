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
from firststep.network import FunctionalModule, Params, preserved
from firststep.rules import Rule
from firststep.task import Inputs


def check_stateless(
    model: FunctionalModule,
    rule: Rule,
    params: Mapping[str, Tensor],
    rule_params: Mapping[str, Tensor],
    x: Inputs,
    y: Tensor,
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
        y: its labels.
    """
    if rule.stateless or y.device.type == "meta":  # which has no values to compare
        return
    taken: list[Params] = []

    def recorded(*arguments: object) -> Params:
        taken.append(rule.update(*arguments))  # type: ignore[arg-type]
        return taken[-1]

    watched = dataclasses.replace(rule, update=recorded)
    other = (y + 1) % (y.max() + 1)
    with preserved(y.device), model.one_task():
        for labels in (y, other, y):
            inner_step(model, watched, params, rule.at_step(rule_params, 0), x, labels)
    if _differ(taken[0], taken[2]):
        raise ValueError(
            f"the rule {rule.name!r} gives different steps for the same gradient: it keeps state between "
            "calls or draws random numbers, but a step is computed more than once. Make `update` depend on "
            "its arguments alone, and keep what it needs besides in rule_params"
        )
    rule.remember_stateless()


def _differ(first: Params, second: Params) -> bool:
    """By more than an accelerator's order of summation explains; NaN in both is no difference."""
    precision = max(torch.finfo(step.dtype).eps for step in first.values()) if first else 0.0
    length = sum(torch.linalg.vector_norm(step).square() for step in first.values())
    apart = sum(torch.linalg.vector_norm(first[name] - second[name]).square() for name in first)
    return bool(apart > precision * length)
