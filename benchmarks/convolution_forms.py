"""The three forms that all convolutions of a meta-gradient have, each alone: forward and both gradients."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

import firststep.metagradient.compiler.kernel_gradients  # noqa: F401  (defines the operator)

aten = torch.ops.aten
Compute = Callable[[], object]


class Forms(NamedTuple):
    """Where there are two routines for one form, both."""

    forward: Compute
    image_gradient: Compute
    image_gradient_transposed: Compute
    kernel_gradient: Compute
    kernel_gradient_ours: Compute


def forms(layer: nn.Conv2d, shape: tuple[int, ...]) -> Forms:
    """On noise of this shape, channels last."""
    kernel = layer.weight.detach()
    stride, padding, size = list(layer.stride), list(layer.padding), list(kernel.shape[2:])
    groups = layer.groups  # ours knows none
    x = torch.randn(shape).to(memory_format=torch.channels_last)
    g = torch.randn_like(F.conv2d(x, kernel, None, stride, padding, 1, groups))
    rest = [x.shape[d] + 2 * padding[d - 2] - size[d - 2] - stride[d - 2] * (g.shape[d] - 1) for d in (2, 3)]

    def backward(*wanted: bool) -> object:
        return aten.convolution_backward(
            g, x, kernel, None, stride, padding, [1, 1], False, [0, 0], groups, [*wanted, False]
        )

    return Forms(
        lambda: F.conv2d(x, kernel, None, stride, padding, 1, groups),
        lambda: backward(True, False),
        lambda: aten.convolution(g, kernel, None, stride, padding, [1, 1], True, rest, groups),
        lambda: backward(False, True),
        lambda: torch.ops.firststep.kernel_gradient(g, x, size, stride, padding),
    )


def best_seconds(compute: Compute, repeats: int = 8) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        compute()
        best = min(best, time.perf_counter() - start)
    return best
