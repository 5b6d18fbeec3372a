"""Small perceptrons among a rule's parameters, which generate rates, masks or losses."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.network import Params


def uniform(fan_in: int, shape: tuple[int, ...], like: Tensor, source: torch.Generator) -> Tensor:
    """Return random values of torch's initial range of a linear layer, ±1 / sqrt(fan_in)."""
    bound = 1 / math.sqrt(fan_in)
    values = torch.empty(shape, dtype=like.dtype, device=source.device)
    return values.uniform_(-bound, bound, generator=source).to(like.device)


def perceptron_parameters(
    prefix: str,
    sizes: tuple[int, int, int],
    like: Tensor,
    source: torch.Generator,
    rows: tuple[int, ...] = (),
) -> Params:
    """Return the parameters of Linear-ReLU-Linear.

    Args:
        prefix: of their names.
        sizes: inputs, hidden units and outputs.
        like: a tensor of their dtype and device.
        source: generator of the initial values.
        rows: leading dimensions, such as the number of inner steps.
    """
    inputs, hidden, outputs = sizes
    return {
        f"{prefix}.hidden.weight": uniform(inputs, (*rows, hidden, inputs), like, source),
        f"{prefix}.hidden.bias": uniform(inputs, (*rows, hidden), like, source),
        f"{prefix}.out.weight": uniform(hidden, (*rows, outputs, hidden), like, source),
        f"{prefix}.out.bias": uniform(hidden, (*rows, outputs), like, source),
    }


def perceptron(prefix: str, rule_params: Params, x: Tensor) -> Tensor:
    """Return the output of the perceptron whose parameters have this prefix."""
    hidden = F.linear(x, rule_params[f"{prefix}.hidden.weight"], rule_params[f"{prefix}.hidden.bias"])
    return F.linear(F.relu(hidden), rule_params[f"{prefix}.out.weight"], rule_params[f"{prefix}.out.bias"])
