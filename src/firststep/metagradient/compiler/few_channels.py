"""Convolutions of images with few channels, a network's first layer, in C++ (``few_channels.cpp``).

Torch's routine is made for many channels: with one it takes three times as long. The sums are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from firststep.metagradient.compiler.operators import define_operator, replace_node
from firststep.metagradient.compiler.routines import has_routines, load_routine

aten = torch.ops.aten

_PIXEL_STRIDES = (1, 2, 3, 4, 6)  # channels times the stride: those that few_channels.cpp is compiled for
_OUTPUTS = 32  # a multiple of two of the longest vectors


@cache
def load_few_channels(dtype: torch.dtype) -> Callable[..., None]:
    """Compile the routine, or load it from the cache."""
    return load_routine(["products", "few_channels"], dtype, pointers=3, numbers=12)


def few_channels_convolution(
    images: Tensor, kernel: Tensor, bias: Tensor | None, stride: list[int], padding: list[int]
) -> Tensor:
    """Return the convolution."""
    rows, columns = padding
    x = images.permute(0, 2, 3, 1).contiguous()
    if rows or columns:
        x = torch.nn.functional.pad(x, (0, 0, columns, columns, rows, rows))
    weight = kernel.permute(2, 3, 1, 0).contiguous()
    start = x.new_zeros(len(kernel)) if bias is None else bias.contiguous()
    out = _empty_pixels(images, kernel, stride, padding)
    numbers = (*x.shape, *out.shape[1:], *weight.shape[:2], *stride)
    load_few_channels(x.dtype)(x, weight, start, out, *numbers, torch.get_num_threads())
    return out.permute(0, 3, 1, 2)


def _empty_pixels(images: Tensor, kernel: Tensor, stride: list[int], padding: list[int]) -> Tensor:
    sizes = zip(images.shape[2:], kernel.shape[2:], stride, padding, strict=True)
    result = [(pixels + 2 * border - entries) // step + 1 for pixels, entries, step, border in sizes]
    return images.new_empty(len(images), *result, len(kernel))


def _empty_result(
    images: Tensor, kernel: Tensor, bias: Tensor | None, stride: list[int], padding: list[int]
) -> Tensor:
    return _empty_pixels(images, kernel, stride, padding).permute(0, 3, 1, 2)


_CONVOLUTION = define_operator(
    few_channels_convolution,
    "(Tensor images, Tensor kernel, Tensor? bias, int[] stride, int[] padding) -> Tensor",
    _empty_result,
)


def use_few_channels(graph: Graph) -> None:
    """Compute convolutions of images with few channels, a first layer, by our routine."""
    for node in list(graph.nodes):
        if node.target is aten.convolution.default and _fits(node):
            images, kernel, bias, stride, padding = tuple[Any, ...](node.args)[:5]
            replace_node(node, _CONVOLUTION, (images, kernel, bias, list(stride), list(padding)))


def _fits(node: Node) -> bool:
    images, kernel, _, stride, _, dilation, transposed, _, groups = tuple[Any, ...](node.args)
    value, result = images.meta["val"], node.meta["val"]
    return bool(
        has_routines(value)
        and not transposed
        and groups == 1
        and list(dilation) == [1, 1]
        and value.shape[1] * stride[1] in _PIXEL_STRIDES
        and kernel.meta["val"].shape[0] % _OUTPUTS == 0
        and result.numel() > 0
    )
