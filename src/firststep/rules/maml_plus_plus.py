"""MAML++: rates and batch-norm parameters of their own for every inner step."""

from __future__ import annotations

from functools import partial

import torch

from firststep.network import FunctionalModule, Params
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.layers import norm_parameters
from firststep.rules.rule import Rule, SupportLoss, require_rate

ANNEALED_SHARE = 0.1  # of all meta-updates; the authors anneal in the first 10 of 100 epochs


def maml_plus_plus(rate: float = DEFAULT_RATE, steps: int = 5) -> Rule:
    """Step k adds -rate(layer, k) · g (Antoniou, Edwards and Storkey, "How to train your MAML", ICLR 2019).

    A layer's weight and bias share a learned rate for each of the ``steps`` inner steps, all starting at
    ``rate``. Scale and shift of normalisation layers do not follow the gradient: after step k they *are*
    their learned values for stage k, starting at those of the network, which remain those of stage 0. So the
    query images after step k and the support images of step k+1 meet the same values; the authors keep one
    set less and let the query share that of the step before. Steps beyond ``steps`` use the last ones.

    The third ingredient, the query loss after every step, is :func:`annealed_query_weights`. Not here: the
    authors' first-order start, a saving that an exact meta-gradient of constant memory does not need; their
    running statistics per step (our batch norm keeps none); and their schedule of the outer rate.

    Examples:
        >>> rule_params = fs.maml_plus_plus(rate=0.1, steps=2).init(model, model.params())
        >>> all(len(value) == 2 for value in rule_params.values())
        True
    """
    rate = require_rate(rate)
    if steps < 1:
        raise ValueError(f"steps must be at least 1, not {steps}")

    return Rule(name="maml++", init=partial(_init, rate=rate, steps=steps), update=_update, per_step=True)


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


def annealed_query_weights(update: int, updates: int, steps: int) -> tuple[float, ...] | None:
    """Weights of the query losses after steps 1..K at a meta-update; None once only the last counts.

    They start at 1/K each. Over the first tenth of training all but the last fall linearly to 0 and the last
    rises to 1, so that they always sum to 1. The authors stop at 3 % instead of 0; at 0 the other query
    losses need not be computed at all.

    Args:
        update: the meta-update, counted from 0.
        updates: how many there will be in all.
        steps: inner steps K.

    Examples:
        >>> fs.annealed_query_weights(update=0, updates=1000, steps=4)
        (0.25, 0.25, 0.25, 0.25)
        >>> fs.annealed_query_weights(update=500, updates=1000, steps=4)
    """
    if update < 0 or updates < 1 or steps < 1:
        raise ValueError(
            "update must be at least 0, updates and steps at least 1; "
            f"they are update={update}, updates={updates}, steps={steps}"
        )
    done = min(1.0, update / (ANNEALED_SHARE * updates))
    if done == 1.0 or steps == 1:
        return None
    early = (1 - done) / steps
    return (early,) * (steps - 1) + (1 - (steps - 1) * early,)
