"""Adam and RMSProp: steps that are scaled by a running mean of squared gradients."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from firststep.conditioning import has_float64
from firststep.network import Params
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.registry import register_method
from firststep.rules.rule import (
    Moves,
    Rule,
    SupportLoss,
    build_rule,
    require_decay,
    require_positive,
    stepping,
)

EPS = 1e-8


@register_method("adam")
def adam(
    rate: float | None = DEFAULT_RATE,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = EPS,
    weight_decay: float = 0.0,
    moves: Moves = "all",
) -> Rule:
    """Return Adam in the inner loop (Kingma and Ba, 2015), as ``torch.optim.Adam`` and ``AdamW`` take it.

    m ← β₁ m + (1 - β₁) g and v ← β₂ v + (1 - β₂) g², both 0 before the first step, corrected for that start
    by 1 - βᵗ; step -α [m̂ / (sqrt(v̂) + ε) + λ θ]. The meta-gradient goes through m and v. The first step is
    nearly the sign of the gradient: its derivative is ε / (|g| + ε)², at most 1/ε. A larger ``eps`` keeps
    meta-gradients of parameters with almost no gradient small.

    Args:
        rate: α; None leaves the rate and the sign out, as in :func:`firststep.momentum`.
        betas: β₁ and β₂.
        eps: ε.
        weight_decay: λ, decoupled from the gradient as in AdamW.
        moves: the parameters that move, as in :func:`firststep.maml`.

    Examples:
        >>> rule = fs.chain(fs.clip_by_norm(1.0), fs.adam(rate=0.01))
        >>> rule.name, len(rule.init_state({"w": torch.ones(2)}))
        ('clip-by-norm | adam', 3)
    """
    if not 0 <= weight_decay < float("inf"):
        raise ValueError(f"weight_decay must be at least 0, not {weight_decay}")
    first, second = betas
    update = partial(
        _adam,
        rate=stepping(rate),
        first=require_decay("betas", first),
        second=require_decay("betas", second),
        eps=require_positive("eps", eps),
        weight_decay=weight_decay,
    )
    return build_rule("adam", update, moves, init_state=_init_adam)


@register_method("rmsprop")
def rmsprop(
    rate: float | None = DEFAULT_RATE, decay: float = 0.99, eps: float = EPS, moves: Moves = "all"
) -> Rule:
    """Return RMSProp in the inner loop: v ← ρ v + (1 - ρ) g², step -α g / (sqrt(v̂) + ε).

    v is 0 before the first step and v̂ = v / (1 - ρᵗ) is corrected for that: it is Adam with β₁ = 0. Without
    the correction, as in ``torch.optim.RMSprop``, the first step would be ten times as long as later ones.

    Args:
        rate: α; None leaves the rate and the sign out, as in :func:`firststep.momentum`.
        decay: ρ.
        eps: ε.
        moves: the parameters that move, as in :func:`firststep.maml`.

    Examples:
        >>> list(fs.rmsprop(rate=0.01).init_state({"w": torch.ones(2)}))
        ['square.w', 'count']
    """
    update = partial(
        _adam,
        rate=stepping(rate),
        first=None,
        second=require_decay("decay", decay),
        eps=require_positive("eps", eps),
        weight_decay=0.0,
    )
    return build_rule("rmsprop", update, moves, init_state=_init_squares)


def _init_squares(params: Params) -> Params:
    squares = {f"square.{name}": torch.zeros_like(value) for name, value in params.items()}
    device = next(iter(params.values())).device
    # Corrections for the start are exact in float64; a device that has none makes them in float32.
    dtype = torch.float64 if has_float64(device) else torch.float32
    return {**squares, "count": torch.zeros((), dtype=dtype, device=device)}


def _init_adam(params: Params) -> Params:
    means = {f"mean.{name}": torch.zeros_like(value) for name, value in params.items()}
    return {**means, **_init_squares(params)}


def _adam(
    grads: Params,
    params: Params,
    rule_params: Params,
    loss: SupportLoss,
    state: Params,
    *,
    rate: float,
    first: float | None,
    second: float,
    eps: float,
    weight_decay: float,
) -> tuple[Params, Params]:
    count = state["count"].detach() + 1
    new: Params = {"count": count}
    steps: Params = {}
    for name, grad in grads.items():
        mean = grad
        if first is not None:
            new[f"mean.{name}"] = first * state[f"mean.{name}"] + (1 - first) * grad
            mean = (new[f"mean.{name}"].to(count.dtype) / (1 - first**count)).to(grad.dtype)
        square = second * state[f"square.{name}"] + (1 - second) * grad.square()
        corrected = (square.to(count.dtype) / (1 - second**count)).to(grad.dtype)
        direction = mean / (_root(corrected) + eps)
        if weight_decay:
            direction = direction + weight_decay * params[name]
        steps[name] = rate * direction
        new[f"square.{name}"] = square
    return steps, new


def _root(values: Tensor) -> Tensor:
    """Return the square root with derivative 0 at 0, where a gradient is 0: 0 · ∞ would be NaN."""
    zero = values == 0
    return values.masked_fill(zero, 1.0).sqrt().masked_fill(zero, 0.0)
