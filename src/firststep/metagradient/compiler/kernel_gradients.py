"""The gradients of convolutions in their kernels, by the routine that is fastest for their shape.

In a second derivative torch slides one batch of images over another as if it were a (huge) kernel. It is the
gradient in the kernel of an ordinary convolution, for which there is a fast routine; of a convolution with a
stride, the same with that stride as a dilation, of which the superfluous rows and columns are cut off.

That routine is itself slow. Of 3 x 3 kernels with enough channels :mod:`winograd` is taken, of others that
are not too large :mod:`direct_gradient`. Where a kernel has many entries, or on other processors the image
very few channels, the gradient is one matrix product: of the patches that the kernel sees, [pixels, kernel
entries of one output channel], and the cotangent, [pixels, output channels]. Elsewhere the patches, nine
times the images, would take more memory and time than they save; large ones are never made.

Of large images with some channels it is one product for each entry of the kernel, without patches: padded
images as one long row of pixels, shifted by the entry, against the cotangent in the same layout.

Measured on CPUs (benchmarks/convolutions.py): other devices keep their own routine.

All compute the same sums.
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
from firststep.metagradient.compiler.winograd import has_winograd

aten = torch.ops.aten

_FEW_ENTRIES = 32  # of a kernel's input side, where images have one channel or three
_MANY_CHANNELS = 128  # of the output
LARGEST_PATCHES = 2**26  # bytes
_SHIFTED_CHANNELS, _SHIFTED_PIXELS = 64, 400  # from which on products by shifts are faster


def kernel_gradient(
    cotangent: Tensor, images: Tensor, size: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    """Of conv(images, kernel), [out, in, *size], by the routine that its shape asks for."""
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
    if entries >= images_in * pixels:  # patches in the order of the kernel, which is larger than they are
        patches = seen.reshape(images_in * pixels, entries)
        return (values.flatten(0, 1).mT @ patches).view(out, channels, *size)
    patches = seen.permute(0, 1, 2, 4, 5, 3).reshape(images_in, pixels, entries)
    if entries <= _FEW_ENTRIES:  # a long, thin product: image by image, on all cores
        product = torch.bmm(patches.mT, values).sum(0)
    else:
        product = patches.flatten(0, 1).mT @ values.flatten(0, 1)
    gradient = product.view(*size, channels, out).permute(3, 2, 0, 1)
    # In the kernel's own order: a step's new parameters shall be those that the next step was compiled for.
    return gradient.clone(memory_format=torch.contiguous_format)


def _has_shifts(cotangent: Tensor, channels: int, stride: list[int]) -> bool:
    enough = min(cotangent.shape[1], channels) >= _SHIFTED_CHANNELS
    return enough and math.prod(cotangent.shape[2:]) >= _SHIFTED_PIXELS and list(stride) == [1, 1]


def _by_shifts(cotangent: Tensor, images: Tensor, size: list[int], padding: list[int]) -> Tensor:
    """Entry (i, j) of the kernel meets pixel p + i · width + j of the padded images at pixel p of the result.

    The result's rows get as many zeros on the right as those of the images are longer: so both are
    matrices [pixels, channels], of which a shift is a part, not a copy.
    """
    (rows, columns), (out, height) = padding, cotangent.shape[1:3]
    pixels = images.permute(0, 2, 3, 1)
    # One row more below, because the last shifts reach beyond the images.
    padded = torch.nn.functional.pad(pixels, (0, 0, columns, columns, rows, rows + 1))
    width = padded.shape[2]
    long = padded.reshape(len(images), -1, images.shape[1])
    values = torch.nn.functional.pad(cotangent.permute(0, 2, 3, 1), (0, 0, 0, width - cotangent.shape[3]))
    against = values.reshape(len(images), height * width, out).mT
    products = []
    for shift in (i * width + j for i in range(size[0]) for j in range(size[1])):
        # Image by image, on all cores.
        products.append(torch.bmm(against, long[:, shift : shift + height * width]).sum(0))
    gradient = torch.stack(products).view(*size, out, images.shape[1]).permute(2, 3, 0, 1)
    return gradient.clone(memory_format=torch.contiguous_format)


def _operator() -> torch.library.Library:
    """To a compiler it is what its body does."""
    library = torch.library.Library("firststep", "FRAGMENT")
    library.define(
        "kernel_gradient(Tensor cotangent, Tensor images, int[] size, int[] stride, int[] padding) -> Tensor"
    )
    library.impl("kernel_gradient", kernel_gradient, "CompositeImplicitAutograd")
    return library


# A module that is loaded again finds its operator there: it can be defined once in a process.
_library = globals().get("_library") or _operator()


def use_fast_kernel_gradients(graph: Graph) -> None:
    """Change ``graph`` in place."""
    for node in list(graph.nodes):
        if node.target is aten.convolution.default:
            _of_second_derivative(graph, node)
    for node in list(graph.nodes):
        if node.target is aten.convolution_backward.default:
            _as_product(graph, node)


def _of_second_derivative(graph: Graph, node: Node) -> None:
    """conv(xᵀ, y'ᵀ) with images and channels exchanged: the transpose of the gradient in the kernel."""
    image, cotangent, bias, stride, padding, dilation, transposed, _, groups = tuple[Any, ...](node.args)
    images, against = _exchanged(image), _exchanged(cotangent)
    if images is None or against is None or bias is not None or transposed or groups != 1 or stride != [1, 1]:
        return
    (turned, last), images_shape = _last_form(node), images.meta["val"].shape
    shape = list(node.meta["val"].shape)  # [in, out, height, width]
    for dim in (2, 3):
        # It may be cut for another purpose: then the size does not go with that of the cotangent.
        left = images_shape[dim] + 2 * padding[dim - 2] - last.meta["val"].shape[dim]
        if left // dilation[dim - 2] + 1 != against.meta["val"].shape[dim]:
            turned, last = False, node
    shape[2:] = last.meta["val"].shape[2:]
    with graph.inserting_before(node):
        kernel = graph.call_function(aten.new_zeros.default, (images, [shape[1], shape[0], *shape[2:]]))
        kernel.meta["val"] = node.meta["val"].new_empty([shape[1], shape[0], *shape[2:]])
        gradients = graph.call_function(
            aten.convolution_backward.default,
            (against, images, kernel, None, dilation, padding, [1, 1], False, [0, 0], 1,
             [False, True, False]),
        )  # fmt: skip
        result = graph.call_function(getitem, (gradients, 1))
        result.meta["val"] = kernel.meta["val"]
        if not turned:
            result = graph.call_function(aten.transpose.int, (result, 0, 1))
    result.meta = dict(last.meta)
    last.replace_all_uses_with(result)


def _last_form(node: Node) -> tuple[bool, Node]:
    """After the transpose back, if any, and after a stride's superfluous rows and columns are cut off."""
    turned = False
    while len(node.users) == 1:
        user = next(iter(node.users))
        if not turned and _exchanged(user) is node:
            turned = True
        elif not (user.target is aten.slice.Tensor and user.args[1] in (2, 3) and user.args[2] == 0):
            break
        node = user
    return turned, node


def _exchanged(node: object) -> Node | None:
    """What a node is the transpose of, in its first two dimensions."""
    if isinstance(node, Node) and node.target is aten.transpose.int and set(node.args[1:]) == {0, 1}:
        source = node.args[0]
        return source if isinstance(source, Node) else None
    return None


def _as_product(graph: Graph, node: Node) -> None:
    cotangent, images, kernel, _, stride, padding, dilation, transposed, _, groups, wanted = tuple[Any, ...](
        node.args
    )
    if not wanted[1] or transposed or groups != 1 or list(dilation) != [1, 1]:
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
    of_number = {user.args[1]: user for user in node.users}
    if 1 not in of_number:
        return
    with graph.inserting_before(node):
        product = graph.call_function(
            torch.ops.firststep.kernel_gradient.default,
            (cotangent, images, list(size), list(stride), list(padding)),
        )
        product.meta = dict(of_number[1].meta)
        of_number[1].replace_all_uses_with(product)
        if 2 in of_number:
            total = graph.call_function(aten.sum.dim_IntList, (cotangent, [0, 2, 3]))
            total.meta = dict(of_number[2].meta)
            of_number[2].replace_all_uses_with(total)
    node.args = (*node.args[:-1], [wanted[0], False, False])
    node.kwargs = {}
