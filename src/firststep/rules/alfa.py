"""ALFA: rates and weight decay that a small network generates at every step from gradients and weights."""

from __future__ import annotations

from functools import partial

import torch

from firststep.network import FunctionalModule, Params
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.layers import without_norms
from firststep.rules.registry import register_method
from firststep.rules.rule import Moves, Rule, SupportLoss, build_rule, require_positive, require_rate
from firststep.rules.small_networks import perceptron, perceptron_parameters

WEIGHT_DECAY = 5e-4


@register_method("alfa")
def alfa(
    rate: float = DEFAULT_RATE, steps: int = 5, weight_decay: float = WEIGHT_DECAY, moves: Moves = "all"
) -> Rule:
    """Return the rule of ALFA (Baik et al., "Meta-learning with adaptive hyperparameters", NeurIPS 2020).

    Parameter tensor l takes θ ← (1 - b_lk β_l) θ - a_lk α_l g at step k. The factors α and β, one each per
    tensor, are the output of a perceptron Linear-ReLU-Linear with 2N inputs, hidden units and outputs for N
    tensors. Its inputs are the mean of every tensor and the mean of its gradient. a and b are learned per
    tensor and step. They start at ``rate`` and at ``rate * weight_decay``.

    As in the authors' code, scales and shifts of normalisation layers do not move. There the perceptron
    starts with small outputs around 0. Here its last bias starts at 1, so that the first step is close to
    MAML's. Steps beyond ``steps`` use the last a and b.

    Args:
        rate: α at the start.
        steps: number of trained inner steps.
        weight_decay: λ at the start, which is multiplied by the rate.
        moves: the parameters that move, as in :func:`firststep.maml`.

    Examples:
        >>> rule_params = fs.alfa(rate=0.1, steps=2).init(model, model.params())
        >>> rule_params["rate.classifier.bias"], rule_params["generator.out.bias"].shape
        (tensor([0.1000, 0.1000]), torch.Size([20]))
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, not {steps}")
    rate = require_rate(rate)
    decay = rate * require_positive("weight_decay", weight_decay)
    return build_rule(
        "alfa",
        _update,
        moves,
        init=partial(_init, rate=rate, decay=decay, steps=steps),
        allowed=without_norms,
        per_step=("rate.", "decay."),
    )


def _init(
    model: FunctionalModule,
    params: Params,
    generator: torch.Generator | None = None,
    *,
    rate: float,
    decay: float,
    steps: int,
) -> Params:
    source = torch.Generator().manual_seed(0) if generator is None else generator
    size = 2 * len(params)
    rule_params = perceptron_parameters("generator", (size, size, size), next(iter(params.values())), source)
    rule_params["generator.out.bias"] = torch.ones_like(rule_params["generator.out.bias"])
    for name, value in params.items():
        rule_params[f"rate.{name}"] = value.new_full((steps,), rate)
        rule_params[f"decay.{name}"] = value.new_full((steps,), decay)
    return rule_params


def _update(grads: Params, params: Params, rule_params: Params, loss: SupportLoss) -> Params:
    means = [value.mean() for value in params.values()] + [grad.mean() for grad in grads.values()]
    factors = perceptron("generator", rule_params, torch.stack(means))
    steps: Params = {}
    for number, (name, grad) in enumerate(grads.items()):
        rate = rule_params[f"rate.{name}"] * factors[number]
        decay = rule_params[f"decay.{name}"] * factors[len(grads) + number]
        steps[name] = -decay * params[name] - rate * grad
    return steps
