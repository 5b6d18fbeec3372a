"""Put torch's fast kernels in the place of two things that a recorded second derivative does slowly.

Pooling: the compiler writes loops of its own for 2x2 max-pooling's way back, which search every window and
use no vector instructions. The operators below are, to the compiler, single calls of torch's kernels.

The kernel gradient: torch differentiates a convolution's backward pass by sliding one batch of images over
another as if it were a (huge) kernel. It is the gradient in the kernel of an ordinary convolution, for which
there is a fast routine.

Both compute the same sums.
"""

from __future__ import annotations

from operator import getitem
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

aten = torch.ops.aten


def use_fast_kernels(graph: GraphModule) -> None:
    """Change ``graph`` in place."""
    for node in list(graph.graph.nodes):
        if node.target is aten.max_pool2d_with_indices.default and _is_two_by_two(node.args):
            _replace(graph.graph, node, torch.ops.firststep.pool.default, (node.args[0],))
        elif node.target is aten.max_pool2d_with_indices_backward.default and _is_two_by_two(node.args[1:]):
            values, images, places = node.args[0], node.args[1], node.args[-1]
            height, width = images.meta["val"].shape[-2:]
            _replace(graph.graph, node, torch.ops.firststep.put_back.default, (values, places, height, width))
        elif node.target is aten.gather.default:
            _pick(graph.graph, node)
        elif node.target is aten.convolution.default:
            _kernel_gradient(graph.graph, node)
    for node in graph.graph.nodes:
        if node.target in (aten.view.default, aten._unsafe_view.default):
            node.target = aten.reshape.default  # the forms above may order memory in another way
    graph.graph.eliminate_dead_code()
    graph.recompile()


def pool(images: Tensor) -> tuple[Tensor, Tensor]:
    """2x2 max-pooling, and the places of the largest entries."""
    pooled, places = aten.max_pool2d_with_indices(images, [2, 2], [2, 2])
    return pooled, places


def put_back(values: Tensor, places: Tensor, height: int, width: int) -> Tensor:
    """The transpose of pooling: every value to its place, 0 elsewhere."""
    back: Tensor = aten.max_pool2d_with_indices_backward(
        _ordered_as(places, values), _like(places, height, width, values.dtype),
        [2, 2], [2, 2], [0, 0], [1, 1], False, places,
    )  # fmt: skip
    return back


def pick(images: Tensor, places: Tensor) -> Tensor:
    """The entries of the images at the places of a pooling."""
    if _order(places) is torch.contiguous_format:
        return images.flatten(2).gather(2, places.flatten(2)).view_as(places)
    # Channels innermost: gather along the pixels, the channels side by side.
    pixels = _ordered_as(places, images).permute(0, 2, 3, 1).flatten(1, 2)
    picked = pixels.gather(1, places.permute(0, 2, 3, 1).flatten(1, 2))
    return picked.unflatten(1, places.shape[-2:]).permute(0, 3, 1, 2)


def _pool_shape(images: Tensor) -> tuple[Tensor, Tensor]:
    height, width = images.shape[-2] // 2, images.shape[-1] // 2
    return _like(images, height, width, images.dtype), _like(images, height, width, torch.int64)


def _pick_shape(images: Tensor, places: Tensor) -> Tensor:
    return _like(places, places.shape[-2], places.shape[-1], images.dtype)


def _put_back_shape(values: Tensor, places: Tensor, height: int, width: int) -> Tensor:
    return _like(places, height, width, values.dtype)


def _operators() -> torch.library.Library:
    """Defined at torch's lower level: ``custom_op`` checks every call, which costs as much as a pooling."""
    library = torch.library.Library("firststep", "DEF")
    for signature, operator, fake in (
        ("pool(Tensor images) -> (Tensor, Tensor)", pool, _pool_shape),
        (
            "put_back(Tensor values, Tensor places, int height, int width) -> Tensor",
            put_back,
            _put_back_shape,
        ),
        ("pick(Tensor images, Tensor places) -> Tensor", pick, _pick_shape),
    ):
        library.define(signature)
        library.impl(operator.__name__, operator, "CompositeExplicitAutograd")
        torch.library.register_fake(f"firststep::{operator.__name__}", fake, lib=library)
    return library


# A module that is loaded again finds its operators there: they can be defined once in a process.
_library = globals().get("_library") or _operators()


def _ordered_as(example: Tensor, values: Tensor) -> Tensor:
    return values.contiguous(memory_format=_order(example))


def _order(example: Tensor) -> torch.memory_format:
    innermost = example.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if innermost else torch.contiguous_format


def _like(example: Tensor, height: int, width: int, dtype: torch.dtype) -> Tensor:
    """Room for pictures of another size, in the example's order of memory."""
    shape = (*example.shape[:2], height, width)
    return torch.empty(shape, dtype=dtype, device=example.device, memory_format=_order(example))


def _is_two_by_two(arguments: tuple[object, ...]) -> bool:
    """Of (images, kernel, stride, padding, dilation, ceil_mode), of which the last may be left out."""
    defaults: list[object] = [None, [2, 2], [2, 2], [0, 0], [1, 1], False]
    given = [*arguments[:6], *defaults[len(arguments[:6]) :]]
    given[2] = given[2] or given[1]  # no stride stands for the kernel's size
    return given[1:] == defaults[1:]


def _replace(graph: Graph, node: Node, target: object, arguments: tuple[object, ...]) -> None:
    with graph.inserting_before(node):
        new = graph.call_function(target, arguments)  # type: ignore[arg-type]
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    graph.erase_node(node)


def _pick(graph: Graph, node: Node) -> None:
    """gather(pixels, -1, places) of flattened pictures, the second derivative of pooling."""
    pixels, dim, places = node.args[:3]
    pictures, flat_places = _unflattened(pixels), _unflattened(places)
    if dim != -1 or pictures is None or flat_places is None or not _is_place(flat_places):
        return
    with graph.inserting_before(node):
        picked = graph.call_function(torch.ops.firststep.pick.default, (pictures, flat_places))
        result = graph.call_function(aten.reshape.default, (picked, list(node.meta["val"].shape)))
    picked.meta = dict(flat_places.meta)
    result.meta = dict(node.meta)
    node.replace_all_uses_with(result)
    graph.erase_node(node)


def _unflattened(node: object) -> Node | None:
    """The pictures [n, channels, height, width] that a node [n, channels, height · width] is a view of."""
    looks = (aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.clone.default)
    while isinstance(node, Node) and node.target in looks:
        node = node.args[0]
        if isinstance(node, Node) and node.meta["val"].dim() == 4:
            return node
    return None


def _is_place(node: Node) -> bool:
    source = node.args[0] if node.target is getitem else None
    return isinstance(source, Node) and source.target is torch.ops.firststep.pool.default


def _kernel_gradient(graph: Graph, node: Node) -> None:
    """conv(xᵀ, y'ᵀ) with images and channels exchanged: the transpose of the gradient in the kernel."""
    image, cotangent, bias, stride, padding, dilation, transposed, _, groups = tuple[Any, ...](node.args)
    exchanged = [_exchanged(image), _exchanged(cotangent)]
    if None in exchanged or bias is not None or transposed or groups != 1 or [*stride, *dilation] != [1] * 4:
        return
    shape = node.meta["val"].shape  # [in, out, height, width]
    with graph.inserting_before(node):
        kernel = graph.call_function(aten.new_zeros.default, (exchanged[0], [shape[1], shape[0], *shape[2:]]))
        gradients = graph.call_function(
            aten.convolution_backward.default,
            (exchanged[1], exchanged[0], kernel, None, [1, 1], padding, [1, 1], False, [0, 0], 1,
             [False, True, False]),
        )  # fmt: skip
        gradient = graph.call_function(getitem, (gradients, 1))
        result = graph.call_function(aten.transpose.int, (gradient, 0, 1))
    result.meta = dict(node.meta)
    node.replace_all_uses_with(result)
    graph.erase_node(node)


def _exchanged(node: object) -> Node | None:
    """What a node is the transpose of, in its first two dimensions."""
    if isinstance(node, Node) and node.target is aten.transpose.int and set(node.args[1:]) == {0, 1}:
        source = node.args[0]
        return source if isinstance(source, Node) else None
    return None
