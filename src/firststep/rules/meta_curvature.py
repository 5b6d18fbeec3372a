"""Meta-Curvature: learned matrices along each mode of a layer's gradient."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from firststep.network import CONVOLUTIONS, FunctionalModule, Params
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.layers import LINEAR, layers
from firststep.rules.registry import register_method
from firststep.rules.rule import Moves, Rule, SupportLoss, build_rule, require_rate


@register_method("meta-curvature")
def meta_curvature(rate: float = DEFAULT_RATE, moves: Moves = "all") -> Rule:
    """Return the rule -α M(g), M a Kronecker product per layer (Park and Oliva, NeurIPS 2019).

    The gradient of a convolution is a tensor G of outputs x kernel positions x inputs, and

        M(G) = G x_out M_out x_f M_f x_in M_in

    multiplies it by a learned matrix along each mode. A linear layer has no kernel mode. Biases are
    multiplied elementwise by a learned vector. All other layers, such as normalisation, take the plain step.
    Matrices start as the identity and vectors at 1, so the first step is MAML's. The paper does not say which
    parameters stay untransformed; this choice agrees with its parameter counts.

    With a shared or zero head, M_out of the classifier is one number. This loses nothing: a matrix that
    treats all classes alike is a I + b 11ᵀ, and the rows of the gradient sum to 0.

    Examples:
        >>> matrices = fs.meta_curvature(rate=0.1).init(model, model.params())
        >>> [tuple(value.shape) for name, value in matrices.items() if "classifier" in name]
        [(5, 5), (32, 32), (5,)]
    """
    return build_rule("meta-curvature", partial(_update, rate=require_rate(rate)), moves, init=_init)


def _init(model: FunctionalModule, params: Params, generator: torch.Generator | None = None) -> Params:
    rule_params: Params = {}
    for path in layers(model, params, CONVOLUTIONS + LINEAR):
        weight = params[f"{path}.weight"]
        rule_params[f"out.{path}"] = _identity(weight, weight.shape[0])
        if weight.dim() > 2:
            rule_params[f"kernel.{path}"] = _identity(weight, weight[0, 0].numel())
        rule_params[f"in.{path}"] = _identity(weight, weight.shape[1])
        if f"{path}.bias" in params:
            rule_params[f"bias.{path}"] = torch.ones_like(params[f"{path}.bias"])
    return rule_params


def _update(grads: Params, params: Params, rule_params: Params, loss: SupportLoss, *, rate: float) -> Params:
    steps: Params = {}
    for name, grad in grads.items():
        path, _, kind = name.rpartition(".")
        if kind == "weight" and f"out.{path}" in rule_params:
            grad = _along_the_modes(grad, rule_params, path)
        elif kind == "bias" and f"bias.{path}" in rule_params:
            grad = rule_params[f"bias.{path}"] * grad
        steps[name] = -rate * grad
    return steps


def _identity(like: Tensor, size: int) -> Tensor:
    return torch.eye(size, dtype=like.dtype, device=like.device)


def _along_the_modes(grad: Tensor, rule_params: Params, path: str) -> Tensor:
    outputs, inputs = grad.shape[:2]
    along_outputs = rule_params[f"out.{path}"]
    tensor = grad.reshape(outputs, -1)
    tensor = along_outputs @ tensor if len(along_outputs) == outputs else along_outputs * tensor
    if f"kernel.{path}" in rule_params:
        tensor = tensor.reshape(outputs * inputs, -1) @ rule_params[f"kernel.{path}"].T
    # A batch over outputs of (in x in) @ (in x kernel).
    return (rule_params[f"in.{path}"] @ tensor.reshape(outputs, inputs, -1)).reshape(grad.shape)
