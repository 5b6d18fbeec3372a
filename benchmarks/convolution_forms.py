"""The three forms of convolutions in a meta-gradient, each alone: forward and both gradients."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep.metagradient.compiler.passes import ROUTINES, apply
from firststep.metagradient.compiler.trace import trace_graph

aten = torch.ops.aten
Compute = Callable[[], object]


class Forms(NamedTuple):
    """Return all routines per form; compiled graphs use those named ours."""

    forward: Compute
    forward_ours: Compute
    image_gradient: Compute
    image_gradient_transposed: Compute
    image_gradient_ours: Compute
    kernel_gradient: Compute
    kernel_gradient_ours: Compute


def forms(layer: nn.Conv2d, shape: tuple[int, ...]) -> Forms:
    """Return the forms on channels-last noise of this shape."""
    kernel = layer.weight.detach()
    stride, padding, size = list(layer.stride), list(layer.padding), list(kernel.shape[2:])
    groups = layer.groups  # our routines have none
    x = torch.randn(shape).to(memory_format=torch.channels_last)
    g = torch.randn_like(F.conv2d(x, kernel, None, stride, padding, 1, groups))
    rest = [x.shape[d] + 2 * padding[d - 2] - size[d - 2] - stride[d - 2] * (g.shape[d] - 1) for d in (2, 3)]

    def forward(x: Tensor, kernel: Tensor) -> Tensor:
        return aten.convolution(x, kernel, None, stride, padding, [1, 1], False, [0, 0], groups)

    def transposed(g: Tensor, kernel: Tensor) -> Tensor:
        return aten.convolution(g, kernel, None, stride, padding, [1, 1], True, rest, groups)

    def backward(*outputs: bool) -> object:
        return aten.convolution_backward(
            g, x, kernel, None, stride, padding, [1, 1], False, [0, 0], groups, [*outputs, False]
        )

    return Forms(
        lambda: forward(x, kernel),
        as_in_graphs(forward, x, kernel),
        lambda: backward(True, False),
        lambda: transposed(g, kernel),
        as_in_graphs(transposed, g, kernel),
        lambda: backward(False, True),
        lambda: torch.ops.firststep.kernel_gradient(g, x, size, stride, padding),
    )


def as_in_graphs(function: Callable[..., Tensor], *arguments: Tensor) -> Compute:
    """Return the function with the routines that compiled graphs use."""
    graph, _ = trace_graph(function, arguments)
    apply(ROUTINES, graph)
    return lambda: graph(*arguments)


def best_seconds(compute: Compute, repeats: int = 8) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        compute()
        best = min(best, time.perf_counter() - start)
    return best
