"""Meta-SGD: a learned rate for every single parameter."""

from __future__ import annotations

from functools import partial

import torch

from firststep.network import FunctionalModule, Params
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.rule import Rule, SupportLoss, require_rate


def meta_sgd(rate: float = DEFAULT_RATE) -> Rule:
    """-rates ⊙ g, one rate for every parameter (Li, Zhou, Chen and Li, "Meta-SGD", 2017).

    The rates may become negative: then the outer loop has found that this parameter should climb. They start
    at ``rate`` everywhere, so that the first step is MAML's; the original draws them at random, which only
    slows the start. Where all classes start from one row of the classifier, they share its rates.

    Examples:
        >>> rates = fs.meta_sgd(rate=0.1).init(model, model.params())
        >>> len(rates) == len(model.params())
        True
    """
    rate = require_rate(rate)
    return Rule(name="meta-sgd", init=partial(_init, rate=rate), update=_update)


def _init(
    model: FunctionalModule, params: Params, generator: torch.Generator | None = None, *, rate: float
) -> Params:
    return {f"rate.{name}": torch.full_like(value, rate) for name, value in params.items()}


def _update(grads: Params, params: Params, rule_params: Params, loss: SupportLoss) -> Params:
    return {name: -rule_params[f"rate.{name}"] * grad for name, grad in grads.items()}
