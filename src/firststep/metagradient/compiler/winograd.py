"""Convolutions of 3 x 3 with stride 1 and padding 1, and their gradients, by Winograd's algorithm.

It takes 16 multiplications where sums of products take 36, in C++ of our own (``winograd.cpp``), for the
library's routines on CPUs do without it. Rounding errors are those of the usual sums, up to a small factor.
Where a pixel is infinite, the results of all tiles that contain it are no numbers.

Nearly all convolutions of a meta-gradient are of this kind: the network's own, their gradients in images and
kernels, and in the second derivative the same three again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import getitem
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from firststep.metagradient.compiler.routines import has_routines, load_routine

aten = torch.ops.aten

_CHANNELS = 32  # a multiple of two of the longest vectors, on both sides
_UNIT = [1, 1]


def has_winograd(
    images: Tensor, outputs: int, size: list[int], stride: list[int], padding: list[int]
) -> bool:
    """By shapes and the kind of processor, not by the clock: runs repeat bit for bit."""
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
    """Compiled, or found on disk."""
    return load_routine(["products", "winograd", "winograd_convolution"], dtype, pointers=3, numbers=12)


@cache
def load_gradient(dtype: torch.dtype) -> Callable[..., None]:
    return load_routine(["products", "winograd", "winograd_gradient"], dtype, pointers=2, numbers=6)


def winograd_convolution(images: Tensor, kernel: Tensor, bias: Tensor | None, transposed: bool) -> Tensor:
    """As ``aten.convolution`` with stride and padding 1; the transposed one is the gradient in the images."""
    x = images.permute(0, 2, 3, 1).contiguous()
    of_output, of_input, of_row, of_column = kernel.stride()
    outputs, offset = kernel.shape[0], 0
    if transposed:  # the kernel turned round, with its channels exchanged
        of_output, of_input, outputs = of_input, of_output, kernel.shape[1]
        offset, of_row, of_column = 2 * (of_row + of_column), -of_row, -of_column
    out = x.new_empty(*x.shape[:3], outputs)
    added = x if bias is None else bias.contiguous()
    numbers = (*x.shape, outputs, offset, of_output, of_input, of_row, of_column, int(bias is not None))
    load_convolution(x.dtype)(x, kernel, added, out, *numbers, torch.get_num_threads())
    return out.permute(0, 3, 1, 2)


def winograd_gradient(cotangent: Tensor, images: Tensor) -> Tensor:
    """The gradient of a convolution in its kernel."""
    x, g = (value.permute(0, 2, 3, 1).contiguous() for value in (images, cotangent))
    out = x.new_empty(g.shape[3], x.shape[3], 3, 3)
    load_gradient(x.dtype)(x, g, out, *x.shape, g.shape[3], torch.get_num_threads())
    return out


def _shape(images: Tensor, kernel: Tensor, bias: Tensor | None, transposed: bool) -> Tensor:
    n, _, *size = images.shape
    return images.new_empty(n, *size, kernel.shape[int(transposed)]).permute(0, 3, 1, 2)


def _shape_of_gradient(cotangent: Tensor, images: Tensor) -> Tensor:
    return images.new_empty(cotangent.shape[1], images.shape[1], 3, 3)


def _operators() -> torch.library.Library:
    library = torch.library.Library("firststep", "FRAGMENT")
    library.define(
        "winograd_convolution(Tensor images, Tensor kernel, Tensor? bias, bool transposed) -> Tensor"
    )
    library.impl("winograd_convolution", winograd_convolution, "CPU")
    library.impl("winograd_convolution", _shape, "Meta")
    library.define("winograd_gradient(Tensor cotangent, Tensor images) -> Tensor")
    library.impl("winograd_gradient", winograd_gradient, "CPU")
    library.impl("winograd_gradient", _shape_of_gradient, "Meta")
    return library


# A module that is loaded again finds its operators there: they can be defined once in a process.
_library = globals().get("_library") or _operators()


def use_winograd(graph: Graph) -> None:
    """Change ``graph`` in place: its convolutions, and gradients in images, that are of this kind."""
    for node in list(graph.nodes):
        if node.target is aten.convolution.default:
            _replace_convolution(graph, node)
        elif node.target is aten.convolution_backward.default:
            _replace_image_gradient(graph, node)


def _replace_convolution(graph: Graph, node: Node) -> None:
    images, kernel, bias, stride, padding, dilation, transposed, rest, groups = tuple[Any, ...](node.args)
    if list(dilation) != _UNIT or groups != 1 or any(rest):
        return
    outputs, size = kernel.meta["val"].shape[int(transposed)], kernel.meta["val"].shape[2:]
    if has_winograd(images.meta["val"], outputs, list(size), stride, padding):
        _replace(graph, node, (images, kernel, bias, transposed))


def _replace_image_gradient(graph: Graph, node: Node) -> None:
    cotangent, _, kernel, _, stride, padding, dilation, transposed, _, groups, wanted = tuple[Any, ...](
        node.args
    )
    if list(wanted) != [True, False, False] or list(dilation) != _UNIT or transposed or groups != 1:
        return
    _, channels, *size = kernel.meta["val"].shape
    if has_winograd(cotangent.meta["val"], channels, size, stride, padding):
        for user in list(node.users):
            if user.target is getitem and user.args[1] == 0:
                _replace(graph, user, (cotangent, kernel, None, True))


def _replace(graph: Graph, node: Node, arguments: tuple[Any, ...]) -> None:
    with graph.inserting_before(node):
        new = graph.call_function(torch.ops.firststep.winograd_convolution.default, arguments)
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    graph.erase_node(node)
