"""Gradients of convolutions in their kernels, by the fastest routine for their shape.

In a second derivative torch convolves one batch of images with another batch as a huge kernel. That is the
kernel gradient of an ordinary convolution. If the convolution has a stride, torch uses it as a dilation and
slices off the superfluous rows and columns.

3 x 3 kernels with enough channels use :mod:`winograd`; other small kernels use :mod:`direct_gradient`. The
remaining cases are matrix products:

- Kernels with many entries, or very few channels on other processors: one product of the patches, [pixels,
  kernel entries per output channel], and the cotangent, [pixels, output channels]. Patches take nine times
  the memory of the images, so there is a bound on their size.
- Large images with many channels: one product per kernel entry, without patches. The padded images are one
  long row of pixels, shifted by the entry, against the cotangent in the same layout.

This was measured on CPUs (benchmarks/convolutions.py). Other devices keep torch's routine.
"""

from __future__ import annotations

import math
from operator import getitem
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from firststep.metagradient.compiler.direct_gradient import has_direct_gradient
from firststep.metagradient.compiler.few_pixels import has_few_pixels, windows
from firststep.metagradient.compiler.operators import define_operator
from firststep.metagradient.compiler.winograd import has_winograd

aten = torch.ops.aten

_FEW_ENTRIES = 32  # kernel entries per output channel, for images with one or three channels
_MANY_CHANNELS = 128  # output channels
LARGEST_PATCHES = 2**26  # bytes
_SHIFTED_CHANNELS, _SHIFTED_PIXELS = 64, 400  # at least: products by shifts are faster then


def kernel_gradient(
    cotangent: Tensor, images: Tensor, size: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    """Return the gradient of conv(images, kernel) in the kernel, [out, in, *size]."""
    few_pixels = has_few_pixels(cotangent.shape, (cotangent.shape[1], images.shape[1], *size), images.device)
    if not few_pixels and has_winograd(images, cotangent.shape[1], size, stride, padding):
        return torch.ops.firststep.winograd_gradient(cotangent, images)
    if has_direct_gradient(cotangent, images.shape[1], size):
        gradient = torch.ops.firststep.direct_gradient(cotangent, images, size, stride, padding)
        return gradient.permute(3, 2, 0, 1).clone(memory_format=torch.contiguous_format)
    if _has_shifts(cotangent, images.shape[1], stride):
        return _by_shifts(cotangent, images, size, padding)
    images_in, out, *result = cotangent.shape
    channels, pixels, entries = images.shape[1], math.prod(result), images.shape[1] * math.prod(size)
    values = cotangent.permute(0, 2, 3, 1).reshape(images_in, pixels, out)
    seen = windows(images, size, stride, padding, cotangent.shape[2:])
    if entries >= images_in * pixels:  # the kernel is larger than the patches: keep the kernel's order
        patches = seen.reshape(images_in * pixels, entries)
        return (values.flatten(0, 1).mT @ patches).view(out, channels, *size)
    patches = seen.permute(0, 1, 2, 4, 5, 3).reshape(images_in, pixels, entries)
    if entries <= _FEW_ENTRIES:  # a long, thin product: one per image uses all cores
        product = torch.bmm(patches.mT, values).sum(0)
    else:
        product = patches.flatten(0, 1).mT @ values.flatten(0, 1)
    gradient = product.view(*size, channels, out).permute(3, 2, 0, 1)
    # Keep the kernel's strides: the next step was compiled for parameters with these.
    return gradient.clone(memory_format=torch.contiguous_format)


def _has_shifts(cotangent: Tensor, channels: int, stride: list[int]) -> bool:
    enough = min(cotangent.shape[1], channels) >= _SHIFTED_CHANNELS
    return enough and math.prod(cotangent.shape[2:]) >= _SHIFTED_PIXELS and list(stride) == [1, 1]


def _by_shifts(cotangent: Tensor, images: Tensor, size: list[int], padding: list[int]) -> Tensor:
    """Take one product per kernel entry.

    Entry (i, j) multiplies pixel p + i · width + j of the padded images with pixel p of the cotangent. The
    cotangent's rows are padded with zeros to the same width. Both are then matrices [pixels, channels], and
    a shift is a slice, not a copy.
    """
    (rows, columns), (out, height) = padding, cotangent.shape[1:3]
    pixels = images.permute(0, 2, 3, 1)
    # One more row below, because the last shifts read beyond the images.
    padded = torch.nn.functional.pad(pixels, (0, 0, columns, columns, rows, rows + 1))
    width = padded.shape[2]
    flat = padded.reshape(len(images), -1, images.shape[1])
    values = torch.nn.functional.pad(cotangent.permute(0, 2, 3, 1), (0, 0, 0, width - cotangent.shape[3]))
    factor = values.reshape(len(images), height * width, out).mT
    products = []
    for shift in (i * width + j for i in range(size[0]) for j in range(size[1])):
        # One product per image uses all cores.
        products.append(torch.bmm(factor, flat[:, shift : shift + height * width]).sum(0))
    gradient = torch.stack(products).view(*size, out, images.shape[1]).permute(2, 3, 0, 1)
    return gradient.clone(memory_format=torch.contiguous_format)


KERNEL_GRADIENT = define_operator(
    kernel_gradient,
    "(Tensor cotangent, Tensor images, int[] size, int[] stride, int[] padding) -> Tensor",
)


def use_kernel_gradients_in_second_derivatives(graph: Graph) -> None:
    """Turn convolutions of images with images into the kernel gradients that they are."""
    for node in list(graph.nodes):
        if node.target is aten.convolution.default:
            _replace_second_derivative(graph, node)


def use_fast_kernel_gradients(graph: Graph) -> None:
    """Compute kernel gradients by our routines where they are faster than torch's."""
    for node in list(graph.nodes):
        if node.target is aten.convolution_backward.default:
            _replace_kernel_gradient(graph, node)


def _replace_second_derivative(graph: Graph, node: Node) -> None:
    """Replace conv(xᵀ, y'ᵀ), with ᵀ exchanging images and channels: a transposed kernel gradient."""
    image, cotangent, bias, stride, padding, dilation, transposed, _, groups = tuple[Any, ...](node.args)
    images, upstream = _transposed(image), _transposed(cotangent)
    if (
        images is None
        or upstream is None
        or bias is not None
        or transposed
        or groups != 1
        or stride != [1, 1]
    ):
        return
    (restored, last), images_shape = _final_form(node), images.meta["val"].shape
    shape = list(node.meta["val"].shape)  # [in, out, height, width]
    for dim in (2, 3):
        # If the slice has another purpose, the size does not fit the cotangent's.
        left = images_shape[dim] + 2 * padding[dim - 2] - last.meta["val"].shape[dim]
        if left // dilation[dim - 2] + 1 != upstream.meta["val"].shape[dim]:
            restored, last = False, node
    shape[2:] = last.meta["val"].shape[2:]
    with graph.inserting_before(node):
        kernel = graph.call_function(aten.new_zeros.default, (images, [shape[1], shape[0], *shape[2:]]))
        kernel.meta["val"] = node.meta["val"].new_empty([shape[1], shape[0], *shape[2:]])
        gradients = graph.call_function(
            aten.convolution_backward.default,
            (upstream, images, kernel, None, dilation, padding, [1, 1], False, [0, 0], 1,
             [False, True, False]),
        )  # fmt: skip
        result = graph.call_function(getitem, (gradients, 1))
        result.meta["val"] = kernel.meta["val"]
        if not restored:
            result = graph.call_function(aten.transpose.int, (result, 0, 1))
    result.meta = dict(last.meta)
    last.replace_all_uses_with(result)


def _final_form(node: Node) -> tuple[bool, Node]:
    """Return whether the result is transposed back, and the node after that and after a stride's slices."""
    restored = False
    while len(node.users) == 1:
        user = next(iter(node.users))
        if not restored and _transposed(user) is node:
            restored = True
        elif not (user.target is aten.slice.Tensor and user.args[1] in (2, 3) and user.args[2] == 0):
            break
        node = user
    return restored, node


def _transposed(node: object) -> Node | None:
    """Return what ``node`` transposes in the first two dimensions, or None."""
    if isinstance(node, Node) and node.target is aten.transpose.int and set(node.args[1:]) == {0, 1}:
        source = node.args[0]
        return source if isinstance(source, Node) else None
    return None


def _replace_kernel_gradient(graph: Graph, node: Node) -> None:
    arguments = tuple[Any, ...](node.args)
    cotangent, images, kernel, _, stride, padding, dilation, transposed, _, groups, outputs = arguments
    if not outputs[1] or transposed or groups != 1 or list(dilation) != [1, 1]:
        return
    out, channels, *size = kernel.meta["val"].shape
    value = cotangent.meta["val"]
    patches = math.prod((len(value), *value.shape[2:], channels, *size)) * value.element_size()
    few_or_many = channels * size[0] * size[1] <= _FEW_ENTRIES or out >= _MANY_CHANNELS
    faster = (
        has_winograd(images.meta["val"], out, size, stride, padding)
        or has_direct_gradient(value, channels, size)
        or (few_or_many and patches <= LARGEST_PATCHES)
        or _has_shifts(value, channels, stride)
    )
    if value.device.type != "cpu" or not faster:
        return
    by_output = {user.args[1]: user for user in node.users}
    if 1 not in by_output:
        return
    with graph.inserting_before(node):
        product = graph.call_function(
            KERNEL_GRADIENT, (cotangent, images, list(size), list(stride), list(padding))
        )
        product.meta = dict(by_output[1].meta)
        by_output[1].replace_all_uses_with(product)
        if 2 in by_output:
            total = graph.call_function(aten.sum.dim_IntList, (cotangent, [0, 2, 3]))
            total.meta = dict(by_output[2].meta)
            by_output[2].replace_all_uses_with(total)
    node.args = (*node.args[:-1], [outputs[0], False, False])
    node.kwargs = {}
