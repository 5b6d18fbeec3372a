"""MAML++: learned rates and batch-norm parameters per inner step."""

from __future__ import annotations

from functools import partial

import torch

from firststep.network import FunctionalModule, Params
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.layers import norm_parameters
from firststep.rules.query_weights import annealed_query_weights
from firststep.rules.registry import register_method
from firststep.rules.rule import Moves, Rule, SupportLoss, build_rule, require_rate


@register_method("maml++", query_weights=annealed_query_weights)
def maml_plus_plus(rate: float = DEFAULT_RATE, steps: int = 5, moves: Moves = "all") -> Rule:
    """Return the rule of MAML++ (Antoniou, Edwards and Storkey, ICLR 2019): step k is -rate(layer, k) · g.

    A layer's weight and bias share one learned rate per inner step. All rates start at ``rate``. Scale and
    shift of normalisation layers do not follow the gradient: after step k they *are* their learned values for
    stage k. These start at the network's values, which remain those of stage 0. So the query images after
    step k and the support images of step k+1 see the same values; in the authors' code the query uses those
    of the step before. Steps beyond ``steps`` use the last rates and values.

    The query loss after every step is :func:`annealed_query_weights`. Three parts of the authors' code are
    left out. Their first-order start saves memory that this meta-gradient does not use. Their running
    statistics per step have no counterpart here. Their schedule of the outer rate is a setting of training.

    Examples:
        >>> rule_params = fs.maml_plus_plus(rate=0.1, steps=2).init(model, model.params())
        >>> all(len(value) == 2 for value in rule_params.values())
        True
    """
    rate = require_rate(rate)
    if steps < 1:
        raise ValueError(f"steps must be at least 1, not {steps}")
    return build_rule("maml++", _update, moves, init=partial(_init, rate=rate, steps=steps), per_step=True)


def _init(
    model: FunctionalModule,
    params: Params,
    generator: torch.Generator | None = None,
    *,
    rate: float,
    steps: int,
) -> Params:
    norms = norm_parameters(model, params)
    rule_params: Params = {}
    for name, value in params.items():
        if name in norms:
            rule_params[f"norm.{name}"] = value.detach().expand(steps, *value.shape).clone()
        else:
            rule_params[f"rate.{_layer(name)}"] = value.new_full((steps,), rate)
    return rule_params


def _update(grads: Params, params: Params, rule_params: Params, loss: SupportLoss) -> Params:
    return {
        name: rule_params[f"norm.{name}"] - params[name]
        if f"norm.{name}" in rule_params
        else -rule_params[f"rate.{_layer(name)}"] * grad
        for name, grad in grads.items()
    }


def _layer(name: str) -> str:
    return name.rpartition(".")[0] or name
