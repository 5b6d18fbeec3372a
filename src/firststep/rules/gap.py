"""GAP: learned scales along the singular directions of a convolution's gradient."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.network import CONVOLUTIONS, FunctionalModule, Params
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.layers import layers
from firststep.rules.registry import register_method
from firststep.rules.rule import Moves, Rule, SupportLoss, build_rule, require_rate

SHARPNESS = 2.0  # softplus₂(m) = log(1 + exp(2 m)) / 2
START = math.log(math.expm1(SHARPNESS)) / SHARPNESS  # softplus₂(START) = 1


@register_method("gap")
def gap(rate: float = DEFAULT_RATE, moves: Moves = "all") -> Rule:
    """Return the rule of GAP (Kang et al., CVPR 2023): learned scales along singular directions.

    The step of a convolution is -α U diag(softplus₂(m)) Uᵀ G; all other parameters take the step -α g.
    G is the gradient as a matrix of outputs x (inputs · kernel). U has its left singular vectors, largest
    singular value first, and m one entry per singular value. m starts at softplus₂(m) = 1, so the first step
    is MAML's.

    As in the authors' code, U is constant in the meta-gradient: the derivative of singular vectors divides
    by the gaps between singular values. Repeated or vanishing singular values are therefore harmless.

    Examples:
        >>> scales = fs.gap(rate=0.1).init(model, model.params())
        >>> {name: len(value) for name, value in scales.items()}
        {'m.blocks.0.conv.weight': 9, 'm.blocks.1.conv.weight': 32, 'm.blocks.2.conv.weight': 32,
         'm.blocks.3.conv.weight': 32}
    """
    return build_rule("gap", partial(_update, rate=require_rate(rate)), moves, init=_init)


def _init(model: FunctionalModule, params: Params, generator: torch.Generator | None = None) -> Params:
    rule_params = {}
    for path in layers(model, params, CONVOLUTIONS):
        weight = params[f"{path}.weight"]
        short_side = min(weight.shape[0], weight[0].numel())
        rule_params[f"m.{path}.weight"] = weight.new_full((short_side,), START)
    if not rule_params:
        raise ValueError(
            f"the method gap needs a convolution that moves; {type(model.module).__name__} has none"
        )
    return rule_params


def _update(grads: Params, params: Params, rule_params: Params, loss: SupportLoss, *, rate: float) -> Params:
    return {
        name: -rate * (_precondition(grad, rule_params[f"m.{name}"]) if f"m.{name}" in rule_params else grad)
        for name, grad in grads.items()
    }


def _precondition(grad: Tensor, m: Tensor) -> Tensor:
    matrix = grad.flatten(1)
    basis = _left_singular_vectors(matrix.detach())
    scales = F.softplus(m, beta=SHARPNESS)
    return (basis @ (scales[:, None] * (basis.T @ matrix))).view_as(grad)


def _left_singular_vectors(matrix: Tensor) -> Tensor:
    # LAPACK raises on NaN. A diverged gradient must give a NaN step instead, which training handles.
    finite = torch.isfinite(matrix).all()
    return torch.linalg.svd(torch.where(finite, matrix, 0.0), full_matrices=False).U
