"""ModGrad: a mask for the gradient that small networks generate from the task."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.network import FunctionalModule, Params
from firststep.rules.layers import CONVOLUTIONS_2D, layers
from firststep.rules.registry import register_method
from firststep.rules.rule import Moves, Rule, SupportLoss, build_rule, require_rate
from firststep.rules.small_networks import uniform

CONTEXT = 300  # length of the context vector
MIXTURE = 5  # number of vectors in each softmax mixture
MODULATED = 2  # number of convolutions that move, counted from the end
DEFAULT_RATE = 0.1


@register_method("modgrad")
def modgrad(rate: float = DEFAULT_RATE, moves: Moves | None = None) -> Rule:
    """Return the rule -α mask(c) ⊙ g on the last two convolutions (Simon et al., ECCV 2020).

    Per layer, two networks generate vectors u and v from the context c. The mask is ReLU(u vᵀ), a matrix of
    (kernel height · out) x (kernel width · in) entries in the shape of the weight. A third network generates
    the mask of the bias, if there is one. Each network is Linear-ReLU-Linear with a hidden layer as wide as
    its vector, and its output is a softmax mixture of five vectors. The context comes from the support loss,

        c = -∇_c L(θ - α mask(c) ⊙ g) at c = 0,

    so a step costs one more forward and backward pass. The paper moves the third and fourth convolution of
    Conv4-64. Here the last two convolutions of any network move, up to its ``embedding``.

    The authors' code keeps the first gradient and refreshes only the context; here every inner step takes a
    new gradient and a new context. The generated vectors and the mask start close to 1, so the first step is
    close to plain gradient descent. With torch's default initial values u vᵀ would be of the order of 1e-4,
    and ReLU would cut off half of it.

    Examples:
        >>> fs.modgrad(rate=0.1).moving(model)
        ('blocks.2.conv.weight', 'blocks.2.conv.bias', 'blocks.3.conv.weight', 'blocks.3.conv.bias')
    """
    update = partial(_update, rate=require_rate(rate))
    if moves is None:
        return build_rule("modgrad", update, _last_convolutions, init=_init)
    return build_rule("modgrad", update, moves, init=_init, allowed=_of_convolutions)


def _init(model: FunctionalModule, params: Params, generator: torch.Generator | None = None) -> Params:
    source = torch.Generator().manual_seed(0) if generator is None else generator
    rule_params: Params = {}
    for name, value in params.items():
        for factor, size in _factors(name, value).items():
            rule_params |= _generator_network(f"{factor}.{name}", size, value, source)
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


def _of_convolutions(model: FunctionalModule, names: tuple[str, ...]) -> tuple[str, ...]:
    params = dict(model.module.named_parameters())
    paths = set(layers(model, params, CONVOLUTIONS_2D))
    for name in names:
        if name.rpartition(".")[0] not in paths:
            raise ValueError(
                f"the method modgrad moves convolutions (nn.Conv2d) only; {name} does not belong to one"
            )
    return names


def _last_convolutions(model: FunctionalModule) -> tuple[str, ...]:
    """Return the weights and biases of the last two convolutions up to the embedding."""
    params = dict(model.module.named_parameters())
    paths = list(layers(model, params, CONVOLUTIONS_2D))
    if paths:
        # A shortcut's convolution may be registered after the embedding although it runs before it.
        embedding = model.subset("emb")[0].rpartition(".")[0]
        paths = paths[: paths.index(embedding) + 1] if embedding in paths else paths
    if len(paths) < MODULATED:
        raise ValueError(
            f"the method modgrad moves the last {MODULATED} convolutions (nn.Conv2d) of a network; "
            f"{type(model.module).__name__} has {len(paths)}"
        )
    chosen = {f"{path}.{kind}" for path in paths[-MODULATED:] for kind in ("weight", "bias")}
    return model.subset(sorted(chosen & params.keys()))


def _factors(name: str, value: Tensor) -> dict[str, int]:
    """Return the names of the generated vectors of a parameter's mask, and their sizes."""
    if value.dim() == 1:
        return {"b": value.numel()}
    outputs, inputs, height, width = value.shape
    return {"u": height * outputs, "v": width * inputs}


def _generator_network(prefix: str, size: int, like: Tensor, source: torch.Generator) -> Params:
    """Return the parameters of Linear(300, size)-ReLU-Linear(size, 5 + 5 size) with torch's initial range."""

    outputs = MIXTURE + MIXTURE * size
    # The vectors start at 1. Hidden biases of 0 would close all ReLUs at c = 0.
    bias = torch.ones(outputs, dtype=like.dtype, device=like.device)
    bias[:MIXTURE] = 0
    return {
        f"{prefix}.hidden.weight": uniform(CONTEXT, (size, CONTEXT), like, source),
        f"{prefix}.hidden.bias": uniform(CONTEXT, (size,), like, source),
        f"{prefix}.mixture.weight": uniform(size, (outputs, size), like, source),
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
