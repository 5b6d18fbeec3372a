"""Initial values from an explicit generator, those of "A Closer Look at Few-shot Classification"."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn.utils import skip_init


def convolution(
    in_channels: int, out_channels: int, kernel: int, *, stride: int = 1, padding: int = 0, bias: bool
) -> nn.Conv2d:
    """Return a convolution without drawing random numbers; :func:`initialise` sets its values."""
    module: nn.Conv2d = skip_init(
        nn.Conv2d, in_channels, out_channels, kernel, stride=stride, padding=padding, bias=bias
    )
    return module


def linear(in_features: int, out_features: int) -> nn.Linear:
    module: nn.Linear = skip_init(nn.Linear, in_features, out_features)
    return module


@torch.no_grad()
def initialise(network: nn.Module, generator: torch.Generator | None) -> None:
    """Set convolutions to N(0, sqrt(2 / (kernel² · out))), the classifier to U(±1/sqrt(in)), biases to 0."""
    if generator is None:
        generator = torch.Generator().manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            kernel_area = module.kernel_size[0] * module.kernel_size[1]
            module.weight.normal_(0, math.sqrt(2 / (kernel_area * module.out_channels)), generator=generator)
        elif isinstance(module, nn.Linear):
            bound = 1 / math.sqrt(module.in_features)
            module.weight.uniform_(-bound, bound, generator=generator)
        else:
            continue
        if module.bias is not None:
            module.bias.zero_()
