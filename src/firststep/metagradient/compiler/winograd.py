"""3 x 3 convolutions with stride 1 and padding 1, and their gradients, by Winograd's algorithm.

It takes 16 multiplications where sums of products take 36. Torch's CPU routines do not use it; ours are in
``winograd.cpp``. Rounding errors are those of the usual sums, up to a small factor. Every tile that contains
an infinite pixel becomes NaN.

Nearly all convolutions of a meta-gradient are of this kind: those of the network, their gradients in images
and kernels, and the same three again in the second derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import getitem
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from firststep.metagradient.compiler.operators import define_operator, replace_node
from firststep.metagradient.compiler.routines import has_routines, load_routine

aten = torch.ops.aten

_CHANNELS = 32  # input and output channels: multiples of two of the longest vectors
_UNIT = [1, 1]


def has_winograd(
    images: Tensor, outputs: int, size: list[int], stride: list[int], padding: list[int]
) -> bool:
    """Return whether the algorithm applies. Depends on shapes and processor only, so runs repeat exactly."""
    return (
        has_routines(images)
        and list(size) == [3, 3]
        and list(stride) == _UNIT
        and list(padding) == _UNIT
        and images.shape[1] % _CHANNELS == 0
        and outputs % _CHANNELS == 0
        and images.numel() > 0
    )


@cache
def load_convolution(dtype: torch.dtype) -> Callable[..., None]:
    """Compile the routine, or load it from the cache."""
    return load_routine(["products", "winograd", "winograd_convolution"], dtype, pointers=3, numbers=12)


@cache
def load_gradient(dtype: torch.dtype) -> Callable[..., None]:
    """Compile the routine, or load it from the cache."""
    return load_routine(["products", "winograd", "winograd_gradient"], dtype, pointers=2, numbers=6)


def winograd_convolution(images: Tensor, kernel: Tensor, bias: Tensor | None, transposed: bool) -> Tensor:
    """Return ``aten.convolution`` with stride and padding 1. Transposed, it is the gradient in the images."""
    x = images.permute(0, 2, 3, 1).contiguous()
    output_stride, input_stride, row_stride, column_stride = kernel.stride()
    outputs, offset = kernel.shape[0], 0
    if transposed:  # rotate the kernel by 180 degrees and exchange its channel axes
        output_stride, input_stride, outputs = input_stride, output_stride, kernel.shape[1]
        offset, row_stride, column_stride = 2 * (row_stride + column_stride), -row_stride, -column_stride
    out = x.new_empty(*x.shape[:3], outputs)
    bias_or_any = x if bias is None else bias.contiguous()
    strides = (offset, output_stride, input_stride, row_stride, column_stride)
    numbers = (*x.shape, outputs, *strides, int(bias is not None))
    load_convolution(x.dtype)(x, kernel, bias_or_any, out, *numbers, torch.get_num_threads())
    return out.permute(0, 3, 1, 2)


def winograd_gradient(cotangent: Tensor, images: Tensor) -> Tensor:
    """Return the gradient of a convolution in its kernel."""
    x, g = (value.permute(0, 2, 3, 1).contiguous() for value in (images, cotangent))
    out = x.new_empty(g.shape[3], x.shape[3], 3, 3)
    load_gradient(x.dtype)(x, g, out, *x.shape, g.shape[3], torch.get_num_threads())
    return out


def _empty_convolution(images: Tensor, kernel: Tensor, bias: Tensor | None, transposed: bool) -> Tensor:
    n, _, *size = images.shape
    return images.new_empty(n, *size, kernel.shape[int(transposed)]).permute(0, 3, 1, 2)


def _empty_gradient(cotangent: Tensor, images: Tensor) -> Tensor:
    return images.new_empty(cotangent.shape[1], images.shape[1], 3, 3)


_CONVOLUTION = define_operator(
    winograd_convolution,
    "(Tensor images, Tensor kernel, Tensor? bias, bool transposed) -> Tensor",
    _empty_convolution,
)
define_operator(winograd_gradient, "(Tensor cotangent, Tensor images) -> Tensor", _empty_gradient)


def use_winograd(graph: Graph) -> None:
    """Compute 3 x 3 convolutions and their image gradients by Winograd's algorithm."""
    for node in list(graph.nodes):
        if node.target is aten.convolution.default:
            _replace_convolution(node)
        elif node.target is aten.convolution_backward.default:
            _replace_image_gradient(node)


def _replace_convolution(node: Node) -> None:
    images, kernel, bias, stride, padding, dilation, transposed, rest, groups = tuple[Any, ...](node.args)
    if list(dilation) != _UNIT or groups != 1 or any(rest):
        return
    outputs, size = kernel.meta["val"].shape[int(transposed)], kernel.meta["val"].shape[2:]
    if has_winograd(images.meta["val"], outputs, list(size), stride, padding):
        replace_node(node, _CONVOLUTION, (images, kernel, bias, transposed))


def _replace_image_gradient(node: Node) -> None:
    arguments = tuple[Any, ...](node.args)
    cotangent, _, kernel, _, stride, padding, dilation, transposed, _, groups, outputs = arguments
    if list(outputs) != [True, False, False] or list(dilation) != _UNIT or transposed or groups != 1:
        return
    _, channels, *size = kernel.meta["val"].shape
    if has_winograd(cotangent.meta["val"], channels, size, stride, padding):
        for user in list(node.users):
            if user.target is getitem and user.args[1] == 0:
                replace_node(user, _CONVOLUTION, (cotangent, kernel, None, True))
