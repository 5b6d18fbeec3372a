"""Meta-Curvature: learned matrices along each mode of a layer's gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from firststep.network import FunctionalModule, Params
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.layers import CONVOLUTIONS, LINEAR, layers
from firststep.rules.rule import Rule, SupportLoss, require_rate


def meta_curvature(rate: float = DEFAULT_RATE) -> Rule:
    """-α M(g), M a Kronecker product of learned matrices per layer (Park and Oliva, NeurIPS 2019).

    The gradient of a convolution is a tensor G of outputs x kernel positions x inputs, and

        M(G) = G x_out M_out x_f M_f x_in M_in,

    three matrix products along its three modes; a linear layer has no kernel mode. Biases are multiplied
    elementwise by a vector; normalisation layers, and whatever else is neither convolution nor linear, take
    the plain step. Matrices start as the identity and vectors at 1, so the first step is MAML's. Which
    parameters of the network are left untransformed is not published; these agree with the published counts.
    """
    require_rate(rate)

    def init(model: FunctionalModule, params: Params, generator: torch.Generator | None = None) -> Params:
        own: Params = {}
        for path in layers(model, params, CONVOLUTIONS + LINEAR):
            weight = params[f"{path}.weight"]
            own[f"out.{path}"] = _identity(weight, weight.shape[0])
            if weight.dim() > 2:
                own[f"kernel.{path}"] = _identity(weight, weight[0, 0].numel())
            own[f"in.{path}"] = _identity(weight, weight.shape[1])
            if f"{path}.bias" in params:
                own[f"bias.{path}"] = torch.ones_like(params[f"{path}.bias"])
        return own

    def update(grads: Params, params: Params, own: Params, loss: SupportLoss) -> Params:
        steps: Params = {}
        for name, grad in grads.items():
            path, _, kind = name.rpartition(".")
            if kind == "weight" and f"out.{path}" in own:
                grad = _along_the_modes(grad, own, path)
            elif kind == "bias" and f"bias.{path}" in own:
                grad = own[f"bias.{path}"] * grad
            steps[name] = -rate * grad
        return steps

    return Rule(name="meta-curvature", init=init, update=update)


def _identity(like: Tensor, size: int) -> Tensor:
    return torch.eye(size, dtype=like.dtype, device=like.device)


def _along_the_modes(grad: Tensor, own: Params, path: str) -> Tensor:
    outputs, inputs = grad.shape[:2]
    tensor = own[f"out.{path}"] @ grad.reshape(outputs, -1)
    if f"kernel.{path}" in own:
        tensor = tensor.reshape(outputs * inputs, -1) @ own[f"kernel.{path}"].T
    # [out, in, kernel]: a batch over outputs of (in x in) @ (in x kernel).
    return (own[f"in.{path}"] @ tensor.reshape(outputs, inputs, -1)).reshape(grad.shape)
