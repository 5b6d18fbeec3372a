"""ModGrad: a mask for the gradient, generated from the task by small networks."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.network import FunctionalModule, Params
from firststep.rules.layers import CONVOLUTIONS_2D, layers
from firststep.rules.rule import Rule, SupportLoss, require_rate

CONTEXT = 300  # entries of the task's context vector
MIXTURE = 5  # vectors that each generated vector is a softmax mixture of
MODULATED = 2  # convolutions, counted from the end
DEFAULT_RATE = 0.1


def modgrad(rate: float = DEFAULT_RATE) -> Rule:
    """-α mask(c) ⊙ g on the last two convolutions; nothing else moves (Simon et al., ECCV 2020).

    Two networks generate from the context c the vectors u and v of a layer; its mask is ReLU(u vᵀ) seen in
    the shape of the weight: (kernel height · out) x (kernel width · in) entries. A third generates the mask
    of the bias, where there is one. Each is Linear-ReLU-Linear and its output a softmax mixture of five
    vectors; the hidden layer is as wide as the vector. The context comes from the support loss,

        c = -∇_c L(θ - α mask(c) ⊙ g) at c = 0,

    so a step costs one more forward and backward pass. The paper has it for the third and fourth convolution
    of Conv4-64; the last two of any network (up to its ``embedding``) is the same there.

    Unlike the authors' code, which keeps the first gradient and refreshes only the context, every inner step
    takes a gradient and a context of its own. The generated vectors start close to 1, and so does the mask,
    so that the first step is close to plain gradient descent on the two layers: with torch's usual initial
    values u vᵀ is of the order of 1e-4 and half of it is cut off.

    Examples:
        >>> fs.modgrad(rate=0.1).moving(model)
        ('blocks.2.conv.weight', 'blocks.2.conv.bias', 'blocks.3.conv.weight', 'blocks.3.conv.bias')
    """
    rate = require_rate(rate)

    return Rule(name="modgrad", init=_init, update=partial(_update, rate=rate), moves=_modulated)


def _init(model: FunctionalModule, params: Params, generator: torch.Generator | None = None) -> Params:
    source = torch.Generator().manual_seed(0) if generator is None else generator
    rule_params: Params = {}
    for name in _modulated(model):
        for factor, size in _factors(name, params[name]).items():
            rule_params |= _generator_network(f"{factor}.{name}", size, params[name], source)
    return rule_params


def _update(grads: Params, params: Params, rule_params: Params, loss: SupportLoss, *, rate: float) -> Params:
    def steps(context: Tensor) -> Params:
        return {name: -rate * _mask(name, grad, rule_params, context) * grad for name, grad in grads.items()}

    differentiable = torch.is_grad_enabled()
    with torch.enable_grad():
        some = next(iter(grads.values()))
        origin = some.new_zeros(CONTEXT, requires_grad=True)
        trial = {name: params[name] + step for name, step in steps(origin).items()}
        (gradient,) = torch.autograd.grad(loss(trial), origin, create_graph=differentiable)
    return steps(-gradient)


def _modulated(model: FunctionalModule) -> tuple[str, ...]:
    """Weights and biases of the last two convolutions, the embedding being the last."""
    params = dict(model.module.named_parameters())
    paths = list(layers(model, params, CONVOLUTIONS_2D))
    if paths:
        # A shortcut's convolution may be registered after the embedding; it does not come after it.
        embedding = model.subset("emb")[0].rpartition(".")[0]
        paths = paths[: paths.index(embedding) + 1] if embedding in paths else paths
    if len(paths) < MODULATED:
        raise ValueError(
            f"the method modgrad is defined for networks with at least {MODULATED} convolutions (nn.Conv2d), "
            f"whose last {MODULATED} it moves; {type(model.module).__name__} has {len(paths)}"
        )
    chosen = {f"{path}.{kind}" for path in paths[-MODULATED:] for kind in ("weight", "bias")}
    return model.subset(sorted(chosen & params.keys()))


def _factors(name: str, value: Tensor) -> dict[str, int]:
    """The generated vectors of a parameter's mask, and their sizes."""
    if value.dim() == 1:
        return {"b": value.numel()}
    outputs, inputs, height, width = value.shape
    return {"u": height * outputs, "v": width * inputs}


def _generator_network(prefix: str, size: int, like: Tensor, source: torch.Generator) -> Params:
    """Linear(300, size)-ReLU-Linear(size, 5 + 5 size), uniform in ±1/sqrt(inputs), as torch has it."""

    def uniform(fan_in: int, *shape: int) -> Tensor:
        bound = 1 / math.sqrt(fan_in)
        values = torch.empty(shape, dtype=like.dtype, device=source.device)
        return values.uniform_(-bound, bound, generator=source).to(like.device)

    outputs = MIXTURE + MIXTURE * size
    # The vectors start at 1. The hidden biases must not be 0: at c = 0 all ReLUs would be shut.
    bias = torch.ones(outputs, dtype=like.dtype, device=like.device)
    bias[:MIXTURE] = 0
    return {
        f"{prefix}.hidden.weight": uniform(CONTEXT, size, CONTEXT),
        f"{prefix}.hidden.bias": uniform(CONTEXT, size),
        f"{prefix}.mixture.weight": uniform(size, outputs, size),
        f"{prefix}.mixture.bias": bias,
    }


def _mask(name: str, grad: Tensor, rule_params: Params, context: Tensor) -> Tensor:
    u, *v = (_generate(f"{factor}.{name}", rule_params, context) for factor in _factors(name, grad))
    return F.relu(torch.outer(u, v[0]) if v else u).view_as(grad)


def _generate(prefix: str, rule_params: Params, context: Tensor) -> Tensor:
    hidden = F.relu(
        F.linear(context, rule_params[f"{prefix}.hidden.weight"], rule_params[f"{prefix}.hidden.bias"])
    )
    output = F.linear(hidden, rule_params[f"{prefix}.mixture.weight"], rule_params[f"{prefix}.mixture.bias"])
    return output[:MIXTURE].softmax(0) @ output[MIXTURE:].view(MIXTURE, -1)
