"""Convolutions with a large kernel and few pixels, as one matrix product.

A last layer with 512 channels and 3 x 3 pixels reads more kernel than images. Convolution routines reorder
the kernel in every call, which dominates their time here. We multiply patches, [pixels, kernel entries per
output channel], by the kernel as it is in memory. The sums are those of a convolution.
"""

from __future__ import annotations

import math
from operator import getitem
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.nn import functional as F

from firststep.metagradient.compiler.operators import define_operator, replace_node
from firststep.metagradient.compiler.torch_internals import force_stride_order

aten = torch.ops.aten

_FEW_PIXELS = 1024  # results of all images together
_LARGE_KERNEL = 2**20  # entries


def has_few_pixels(result: torch.Size, kernel: tuple[int, ...] | torch.Size, device: torch.device) -> bool:
    """Return whether a convolution is of this kind, from the shapes of its result and kernel.

    ``result``: [n, channels, height, width].
    """
    few = math.prod(result) // result[1] <= _FEW_PIXELS
    return few and math.prod(kernel) >= _LARGE_KERNEL and device.type == "cpu"


def windows(
    images: Tensor, size: list[int], stride: list[int], padding: list[int], out: list[int] | torch.Size
) -> Tensor:
    """Return the patch per pixel of the result: [n, height, width, channels, kernel height, kernel width]."""
    rows, columns = padding
    # Pad to where the last patch ends. With a stride that may be before the edge of the images.
    reach = [(n - 1) * step + k for n, step, k in zip(out, stride, size, strict=True)]
    below, right = reach[0] - rows - images.shape[2], reach[1] - columns - images.shape[3]
    pixels = images.permute(0, 2, 3, 1)
    padded = F.pad(pixels, (0, 0, columns, right, rows, below)).contiguous()
    # Store the padded images: rows of patches are then plain copies, without a bounds check per entry.
    padded = force_stride_order()(padded, padded.stride())
    return padded.unfold(1, size[0], stride[0]).unfold(2, size[1], stride[1])


def product_of_patches(
    images: Tensor, kernel: Tensor, bias: Tensor | None, stride: list[int], padding: list[int]
) -> Tensor:
    """Return the convolution."""
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
    """Return the convolution's gradient in its images of ``pixels``: add up the overlapping patches."""
    n, outputs, *result = cotangent.shape
    _, channels, *size = kernel.shape
    values = cotangent.permute(0, 2, 3, 1).reshape(-1, outputs)
    patches = (values @ kernel.reshape(outputs, -1)).view(n, *result, channels, *size)
    total = None
    for row in range(size[0]):
        for column in range(size[1]):
            # Space this entry's values by the stride, then shift them to the pixels that it reads.
            spaced = patches[..., row, column].reshape(n, result[0], 1, result[1], 1, channels)
            spaced = F.pad(spaced, (0, 0, 0, stride[1] - 1, 0, 0, 0, stride[0] - 1))
            spaced = spaced.reshape(n, result[0] * stride[0], result[1] * stride[1], channels)
            top, left = row - padding[0], column - padding[1]
            below, right = pixels[0] - spaced.shape[1] - top, pixels[1] - spaced.shape[2] - left
            moved = F.pad(spaced, (0, 0, left, right, top, below))
            total = moved if total is None else total + moved
    assert total is not None
    return total.permute(0, 3, 1, 2)


_PRODUCT = define_operator(
    product_of_patches,
    "(Tensor images, Tensor kernel, Tensor? bias, int[] stride, int[] padding) -> Tensor",
)
_SUM = define_operator(
    sum_of_patches,
    "(Tensor cotangent, Tensor kernel, int[] pixels, int[] stride, int[] padding) -> Tensor",
)


def use_products_of_patches(graph: Graph) -> None:
    """Compute convolutions with large kernels and few pixels as products of patches."""
    for node in list(graph.nodes):
        if node.target is aten.convolution.default:
            _replace_convolution(node)
        elif node.target is aten.convolution_backward.default:
            _replace_image_gradient(node)


def _replace_convolution(node: Node) -> None:
    images, kernel, bias, stride, padding, dilation, transposed, _, groups = tuple[Any, ...](node.args)
    value = images.meta["val"]
    result = value.shape if transposed else node.meta["val"].shape
    if list(dilation) != [1, 1] or groups != 1 or (transposed and bias is not None):
        return
    if has_few_pixels(result, kernel.meta["val"].shape, value.device):
        if transposed:
            pixels = list(node.meta["val"].shape[2:])
            arguments = (images, kernel, pixels, list(stride), list(padding))
            replace_node(node, _SUM, arguments)
        else:
            arguments = (images, kernel, bias, list(stride), list(padding))
            replace_node(node, _PRODUCT, arguments)


def _replace_image_gradient(node: Node) -> None:
    arguments = tuple[Any, ...](node.args)
    cotangent, images, kernel, _, stride, padding, dilation, transposed, _, groups, outputs = arguments
    if list(outputs) != [True, False, False] or list(dilation) != [1, 1] or transposed or groups != 1:
        return
    value = cotangent.meta["val"]
    if has_few_pixels(value.shape, kernel.meta["val"].shape, value.device):
        pixels = list(images.meta["val"].shape[2:])
        for user in list(node.users):
            if user.target is getitem and user.args[1] == 0:
                arguments = (cotangent, kernel, pixels, list(stride), list(padding))
                replace_node(user, _SUM, arguments)
