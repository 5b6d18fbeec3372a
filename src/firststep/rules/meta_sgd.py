"""Meta-SGD: one learned rate per parameter."""

from __future__ import annotations

from functools import partial

import torch

from firststep.network import FunctionalModule, Params
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.registry import register_method
from firststep.rules.rule import Moves, Rule, SupportLoss, build_rule, require_rate


@register_method("meta-sgd")
def meta_sgd(rate: float = DEFAULT_RATE, moves: Moves = "all") -> Rule:
    """Return the rule -rates ⊙ g, one learned rate per parameter (Li et al., "Meta-SGD", 2017).

    All rates start at ``rate``, so the first step is MAML's. The original draws them at random, which only
    slows the start. A rate may become negative. With a shared or zero head all classes share the rates of
    the one classifier row.

    Examples:
        >>> rates = fs.meta_sgd(rate=0.1).init(model, model.params())
        >>> len(rates) == len(model.params())
        True
    """
    return build_rule("meta-sgd", _update, moves, init=partial(_init, rate=require_rate(rate)))


def _init(
    model: FunctionalModule, params: Params, generator: torch.Generator | None = None, *, rate: float
) -> Params:
    return {f"rate.{name}": torch.full_like(value, rate) for name, value in params.items()}


def _update(grads: Params, params: Params, rule_params: Params, loss: SupportLoss) -> Params:
    return {name: -rule_params[f"rate.{name}"] * grad for name, grad in grads.items()}
