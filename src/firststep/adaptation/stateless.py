"""Refuse a rule that is not a pure function of its arguments, because its meta-gradient would be wrong.

The engine recomputes steps in the backward pass. A rule that keeps state between calls, such as momentum in a
closure, then returns a different step, and the result is not the gradient of any loss.
"""

from __future__ import annotations

import dataclasses

import torch

from firststep.adaptation.learner import Learner
from firststep.adaptation.step import inner_step
from firststep.losses import Loss, first_tensor
from firststep.network import Params, preserved
from firststep.task import Inputs, Targets, map_inputs


def check_stateless(learner: Learner, x: Inputs, y: Targets) -> None:
    """Compute the first step twice, once per rule, and refuse a rule whose second step differs.

    In between, it computes a step on other labels: along one gradient, all steps of Adam are equal whatever
    its state. The network draws the same random numbers each time, and torch's generators are restored. A
    rule declared stateless is not checked.

    Args:
        learner: the learner at θ(0) of the task.
        x: inputs of the support set.
        y: its targets.
    """
    rule = learner.rule
    device = first_tensor(y).device
    if rule.stateless or device.type == "meta":  # meta tensors have no values to compare
        return
    taken: list[Params] = []

    def recorded(*arguments: object) -> object:
        result = rule.update(*arguments)
        taken.append(result if rule.init_state is None else result[0])
        return result

    watched = Learner(
        learner.model,
        dataclasses.replace(rule, update=recorded),
        learner.params,
        rule.at_step(learner.rule_params, 0),
        loss=learner.loss,
    )
    with preserved(device), learner.model.one_task():
        for targets in (y, _other_targets(y, learner.loss), y):
            inner_step(watched, x, targets)
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
    """Return whether they differ by more than an accelerator's order of summation; NaN equals NaN."""
    precision = max(torch.finfo(step.dtype).eps for step in first.values()) if first else 0.0
    length = sum(torch.linalg.vector_norm(step).square() for step in first.values())
    apart = sum(torch.linalg.vector_norm(first[name] - second[name]).square() for name in first)
    return bool(apart > precision * length)
