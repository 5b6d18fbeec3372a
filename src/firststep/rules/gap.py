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
from firststep.rules.rule import Rule, SupportLoss, require_rate

SHARPNESS = 2.0  # softplus₂(m) = log(1 + exp(2 m)) / 2
START = math.log(math.expm1(SHARPNESS)) / SHARPNESS  # where softplus₂ is 1


def gap(rate: float = DEFAULT_RATE) -> Rule:
    """-α U diag(softplus₂(m)) Uᵀ G for every convolution, plain elsewhere (Kang et al., CVPR 2023).

    G is the gradient unfolded to outputs x (inputs · kernel), U its left singular vectors, largest singular
    value first, and m has as many entries as there are singular values: the short side of G. As in the
    authors' code U is a constant to the meta-gradient: differentiating singular vectors divides by the gaps
    between singular values. So repeated or vanishing singular values, where U is any basis of their space,
    are harmless. m starts where softplus₂(m) = 1, so the first step is MAML's.

    Examples:
        >>> scales = fs.gap(rate=0.1).init(model, model.params())
        >>> {name: len(value) for name, value in scales.items()}
        {'m.blocks.0.conv.weight': 9, 'm.blocks.1.conv.weight': 32, 'm.blocks.2.conv.weight': 32,
         'm.blocks.3.conv.weight': 32}
    """
    rate = require_rate(rate)

    return Rule(name="gap", init=_init, update=partial(_update, rate=rate))


def _init(model: FunctionalModule, params: Params, generator: torch.Generator | None = None) -> Params:
    rule_params = {}
    for path in layers(model, params, CONVOLUTIONS):
        weight = params[f"{path}.weight"]
        short_side = min(weight.shape[0], weight[0].numel())
        rule_params[f"m.{path}.weight"] = weight.new_full((short_side,), START)
    if not rule_params:
        raise ValueError(
            "the method gap is defined for networks with convolutions; "
            f"{type(model.module).__name__} has none that learns"
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
    # LAPACK raises on NaN. A diverged gradient shall show as NaN in the step, where training can handle it.
    finite = torch.isfinite(matrix).all()
    return torch.linalg.svd(torch.where(finite, matrix, 0.0), full_matrices=False).U
