"""Momentum: steps along a decaying sum of gradients."""

from __future__ import annotations

from functools import partial

import torch

from firststep.network import Params
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.registry import register_method
from firststep.rules.rule import Moves, Rule, SupportLoss, build_rule, require_decay, stepping


@register_method("momentum")
def momentum(
    rate: float | None = DEFAULT_RATE, decay: float = 0.9, nesterov: bool = False, moves: Moves = "all"
) -> Rule:
    """Return gradient descent with momentum: v ← μ v + g, step -α v, as ``torch.optim.SGD`` takes it.

    v is the state of the rule, 0 before the first step. The meta-gradient goes through it.

    Args:
        rate: α. None leaves the rate and the sign out, for another rule after it in :func:`firststep.chain`:
            ``chain(momentum(rate=None), meta_sgd(rate=0.01))`` learns a rate per parameter.
        decay: μ, from 0 to below 1.
        nesterov: take the step -α (g + μ v) instead.
        moves: the parameters that move, as in :func:`firststep.maml`.

    Examples:
        >>> fs.momentum(rate=0.1).init_state({"w": torch.ones(2)})
        {'velocity.w': tensor([0., 0.])}
    """
    update = partial(_update, rate=stepping(rate), decay=require_decay("decay", decay), nesterov=nesterov)
    return build_rule("momentum", update, moves, init_state=_init_state)


def _init_state(params: Params) -> Params:
    return {f"velocity.{name}": torch.zeros_like(value) for name, value in params.items()}


def _update(
    grads: Params,
    params: Params,
    rule_params: Params,
    loss: SupportLoss,
    state: Params,
    *,
    rate: float,
    decay: float,
    nesterov: bool,
) -> tuple[Params, Params]:
    velocity = {name: decay * state[f"velocity.{name}"] + grad for name, grad in grads.items()}
    ahead = {name: grads[name] + decay * v for name, v in velocity.items()} if nesterov else velocity
    steps = {name: rate * value for name, value in ahead.items()}
    return steps, {f"velocity.{name}": value for name, value in velocity.items()}
