"""Convolutions whose kernel is large and whose images have few pixels, as one matrix product.

That of a last layer with 512 channels and 3 x 3 pixels reads more of its kernel than of its images.
Convolution routines arrange the kernel anew in each call, which takes long. Here the patches that it sees,
[pixels, kernel entries of one output channel], are multiplied with the kernel as it is in memory.

The same sums as a convolution's.
"""

from __future__ import annotations

import math
from operator import getitem
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.nn import functional as F

from firststep.metagradient.compiler.torch_internals import force_stride_order

aten = torch.ops.aten

_FEW_PIXELS = 1024  # of the results of all images
_LARGE_KERNEL = 2**20  # entries


def has_few_pixels(result: torch.Size, kernel: tuple[int, ...] | torch.Size, device: torch.device) -> bool:
    """By shapes: of the result, [n, channels, height, width], and of the kernel."""
    few = math.prod(result) // result[1] <= _FEW_PIXELS
    return few and math.prod(kernel) >= _LARGE_KERNEL and device.type == "cpu"


def windows(
    images: Tensor, size: list[int], stride: list[int], padding: list[int], out: list[int] | torch.Size
) -> Tensor:
    """What the kernel sees at each pixel: [images, height, width, channels, kernel height, kernel width]."""
    rows, columns = padding
    # As much below and to the right as the last pixel reaches: a stride may leave some images' edge unseen.
    reach = [(n - 1) * step + k for n, step, k in zip(out, stride, size, strict=True)]
    below, right = reach[0] - rows - images.shape[2], reach[1] - columns - images.shape[3]
    pixels = images.permute(0, 2, 3, 1)
    padded = F.pad(pixels, (0, 0, columns, right, rows, below)).contiguous()
    # Written to memory, so that the windows' rows are copied whole and no entry asks whether it is inside.
    padded = force_stride_order()(padded, padded.stride())
    return padded.unfold(1, size[0], stride[0]).unfold(2, size[1], stride[1])


def product_of_patches(
    images: Tensor, kernel: Tensor, bias: Tensor | None, stride: list[int], padding: list[int]
) -> Tensor:
    """The convolution."""
    outputs, _, *size = kernel.shape
    n, result = len(images), []
    for pixels, entries, step, border in zip(images.shape[2:], size, stride, padding, strict=True):
        result.append((pixels + 2 * border - entries) // step + 1)
    patches = windows(images, size, stride, padding, result).reshape(n * math.prod(result), -1)
    product = patches @ kernel.reshape(outputs, -1).mT
    if bias is not None:
        product = product + bias
    return product.view(n, *result, outputs).permute(0, 3, 1, 2)


def sum_of_patches(
    cotangent: Tensor, kernel: Tensor, pixels: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    """The convolution's gradient in images of so many pixels: a product gives patches, which overlap."""
    n, outputs, *result = cotangent.shape
    _, channels, *size = kernel.shape
    values = cotangent.permute(0, 2, 3, 1).reshape(-1, outputs)
    patches = (values @ kernel.reshape(outputs, -1)).view(n, *result, channels, *size)
    total = None
    for row in range(size[0]):
        for column in range(size[1]):
            # This entry's values, as far apart as the stride, moved to the pixels that it has seen.
            apart = patches[..., row, column].reshape(n, result[0], 1, result[1], 1, channels)
            apart = F.pad(apart, (0, 0, 0, stride[1] - 1, 0, 0, 0, stride[0] - 1))
            apart = apart.reshape(n, result[0] * stride[0], result[1] * stride[1], channels)
            top, left = row - padding[0], column - padding[1]
            below, right = pixels[0] - apart.shape[1] - top, pixels[1] - apart.shape[2] - left
            moved = F.pad(apart, (0, 0, left, right, top, below))
            total = moved if total is None else total + moved
    assert total is not None
    return total.permute(0, 3, 1, 2)


def _operators() -> torch.library.Library:
    """To a compiler they are what their bodies do."""
    library = torch.library.Library("firststep", "FRAGMENT")
    numbers = "int[] stride, int[] padding) -> Tensor"
    library.define(f"product_of_patches(Tensor images, Tensor kernel, Tensor? bias, {numbers}")
    library.define(f"sum_of_patches(Tensor cotangent, Tensor kernel, int[] pixels, {numbers}")
    library.impl("product_of_patches", product_of_patches, "CompositeImplicitAutograd")
    library.impl("sum_of_patches", sum_of_patches, "CompositeImplicitAutograd")
    return library


# A module that is loaded again finds its operators there: they can be defined once in a process.
_library = globals().get("_library") or _operators()


def use_products_of_patches(graph: Graph) -> None:
    """Change ``graph`` in place: its convolutions, and gradients in images, that are of this kind."""
    for node in list(graph.nodes):
        if node.target is aten.convolution.default:
            _replace_convolution(graph, node)
        elif node.target is aten.convolution_backward.default:
            _replace_image_gradient(graph, node)


def _replace_convolution(graph: Graph, node: Node) -> None:
    images, kernel, bias, stride, padding, dilation, transposed, _, groups = tuple[Any, ...](node.args)
    value = images.meta["val"]
    result = value.shape if transposed else node.meta["val"].shape
    if list(dilation) != [1, 1] or groups != 1 or (transposed and bias is not None):
        return
    if has_few_pixels(result, kernel.meta["val"].shape, value.device):
        if transposed:
            pixels = list(node.meta["val"].shape[2:])
            arguments = (images, kernel, pixels, list(stride), list(padding))
            _replace(graph, node, torch.ops.firststep.sum_of_patches.default, arguments)
        else:
            arguments = (images, kernel, bias, list(stride), list(padding))
            _replace(graph, node, torch.ops.firststep.product_of_patches.default, arguments)


def _replace_image_gradient(graph: Graph, node: Node) -> None:
    cotangent, images, kernel, _, stride, padding, dilation, transposed, _, groups, wanted = tuple[Any, ...](
        node.args
    )
    if list(wanted) != [True, False, False] or list(dilation) != [1, 1] or transposed or groups != 1:
        return
    value = cotangent.meta["val"]
    if has_few_pixels(value.shape, kernel.meta["val"].shape, value.device):
        pixels = list(images.meta["val"].shape[2:])
        for user in list(node.users):
            if user.target is getitem and user.args[1] == 0:
                arguments = (cotangent, kernel, pixels, list(stride), list(padding))
                _replace(graph, user, torch.ops.firststep.sum_of_patches.default, arguments)


def _replace(graph: Graph, node: Node, operator: Any, arguments: tuple[Any, ...]) -> None:
    with graph.inserting_before(node):
        new = graph.call_function(operator, arguments)
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    graph.erase_node(node)
