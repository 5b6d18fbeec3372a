"""2x2 max-pooling and its derivatives as pointwise operations, which the compiler can fuse.

The compiler cannot fuse torch's pooling: its inputs and results go through memory, in the backward pass with
all zeros. The compiler's own backward pass searches every window and is not vectorised. Our pooling also
returns the argmax of the four entries. It has the dtype of the images, because comparisons within one dtype
are single vector instructions.

The operators stay in a traced graph until inductor takes it, so that :mod:`partition` can save their results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import getitem

import torch
from torch import Tensor
from torch.fx import Graph, Node

from firststep.metagradient.compiler.operators import define_operator, replace_node

aten = torch.ops.aten

# Operations that keep the order of each image's entries.
_VIEWS = tuple(
    getattr(aten, name).default
    for name in ("view", "_unsafe_view", "reshape", "clone", "expand", "unsqueeze")
)


def max_pool_2x2(images: Tensor, channels_last: bool) -> tuple[Tensor, Tensor]:
    """Return the largest of each four entries and its index, 0 to 3. The first of equal entries counts."""
    first, second, third, fourth = _quarters(_pixels(images, channels_last))
    upper, lower = torch.maximum(first, second), torch.maximum(third, fourth)
    in_upper = torch.where(second > first, images.new_ones(()), 0)
    in_lower = torch.where(fourth > third, images.new_full((), 3), 2)
    argmax = torch.where(lower > upper, in_lower, in_upper)
    return _images(torch.maximum(upper, lower), channels_last), _images(argmax, channels_last)


def gather_2x2(images: Tensor, argmax: Tensor, channels_last: bool) -> Tensor:
    """Return the entries of the images at the argmax of a pooling."""
    first, second, third, fourth = _quarters(_pixels(images, channels_last))
    where = _pixels(argmax, channels_last)
    upper, lower = torch.where(where == 0, first, second), torch.where(where == 2, third, fourth)
    return _images(torch.where(where < 2, upper, lower), channels_last)


def unpool_2x2(values: Tensor, argmax: Tensor, height: int, width: int, channels_last: bool) -> Tensor:
    """Return the transpose of pooling: each value at its argmax, 0 elsewhere."""
    where = _doubled(_pixels(argmax, channels_last))
    rows, columns = (torch.arange(n, device=argmax.device) % 2 for n in where.shape[-3:-1])
    here = where == (2 * rows[:, None, None] + columns[:, None]).to(argmax.dtype)
    back = torch.where(here, _doubled(_pixels(values, channels_last)), 0.0)
    missing = (0, 0, 0, width - back.shape[-2], 0, height - back.shape[-3])  # if a side is odd
    if any(missing):
        back = torch.nn.functional.pad(back, missing)
    return _images(back, channels_last)


def _pixels(images: Tensor, channels_last: bool) -> Tensor:
    """Return [..., height, width, values per pixel], the order in memory, which the compiler then keeps."""
    return images.permute(0, 2, 3, 1) if channels_last else images.unsqueeze(-1)


def _images(pixels: Tensor, channels_last: bool) -> Tensor:
    return pixels.permute(0, 3, 1, 2) if channels_last else pixels.squeeze(-1)


def _quarters(pixels: Tensor) -> list[Tensor]:
    """Return the four entries of all windows, each as an image of a quarter of the size."""
    height, width = (size // 2 * 2 for size in pixels.shape[-3:-1])
    return [pixels[..., row:height:2, column:width:2, :] for row in (0, 1) for column in (0, 1)]


def _doubled(pixels: Tensor) -> Tensor:
    """Repeat every entry four times."""
    *count, height, width, channels = pixels.shape
    spread = pixels[..., :, None, :, None, :].expand(*count, height, 2, width, 2, channels)
    return spread.reshape(*count, 2 * height, 2 * width, channels)


POOL = define_operator(max_pool_2x2, "(Tensor images, bool channels_last) -> (Tensor, Tensor)")
GATHER = define_operator(gather_2x2, "(Tensor images, Tensor argmax, bool channels_last) -> Tensor")
UNPOOL = define_operator(
    unpool_2x2, "(Tensor values, Tensor argmax, int height, int width, bool channels_last) -> Tensor"
)


def fuse_pooling(graph: Graph) -> None:
    """Replace 2x2 max-pooling and its derivatives by pointwise operations that can be fused."""
    for node in list(graph.nodes):
        if node.target is aten.max_pool2d_with_indices.default and _is_two_by_two(node.args):
            users = list(_users_of_argmax(node))
            if all(_is_replaceable(user, node) for user in users):
                for user in users:
                    _unpool(user, node) if _is_backward(user) else _gather(graph, user, node)
                replace_node(node, POOL, (node.args[0], _is_channels_last(node)))


def _is_two_by_two(arguments: tuple[object, ...]) -> bool:
    """Check (images, kernel, stride, padding, dilation, ceil_mode), of which the last may be missing."""
    defaults: list[object] = [None, [2, 2], [2, 2], [0, 0], [1, 1], False]
    given = [*arguments[:6], *defaults[len(arguments[:6]) :]]
    given[2] = given[2] or given[1]  # an empty stride means the kernel's size
    return given[1:] == defaults[1:]


def _users_of_argmax(pool: Node) -> Iterator[Node]:
    """Yield the nodes that compute with the argmax of a pooling or with views of it."""
    stack = [user for user in pool.users if user.target is getitem and user.args[1] == 1]
    seen: set[Node] = set()
    while stack:
        for user in stack.pop().users:
            if user in seen:
                continue
            seen.add(user)
            if user.target in _VIEWS:
                stack.append(user)
            else:
                yield user


def _is_replaceable(user: Node, pool: Node) -> bool:
    if _is_backward(user):
        return True
    if user.target is not aten.gather.default:
        return False
    pixels, dim = user.args[:2]
    assert isinstance(pixels, Node)
    shape = pixels.meta["val"].shape
    return dim in (-1, len(shape) - 1) and len(shape) > 2 and shape[-1] == math.prod(_size(pool.args[0]))


def _is_backward(user: Node) -> bool:
    backward = aten.max_pool2d_with_indices_backward.default
    return user.target is backward and _is_two_by_two(user.args[1:])


def _size(images: object) -> tuple[int, int]:
    assert isinstance(images, Node)
    height, width = images.meta["val"].shape[-2:]
    return height, width


def _is_channels_last(pool: Node) -> bool:
    """Return whether the images of a pooling have their channels innermost in memory."""
    pooled = pool.args[0]
    assert isinstance(pooled, Node)
    value: Tensor = pooled.meta["val"]
    return value.is_contiguous(memory_format=torch.channels_last)


def _unpool(node: Node, pool: Node) -> None:
    values, argmax = node.args[0], node.args[-1]
    pooled = pool.args[0]
    assert isinstance(pooled, Node)
    replace_node(node, UNPOOL, (values, argmax, *_size(pooled), _is_channels_last(pool)))


def _gather(graph: Graph, node: Node, pool: Node) -> None:
    """Replace gather(pixels, -1, argmax) of flattened images, the second derivative of pooling."""
    pixels, _, argmax = node.args[:3]
    height, width = _size(pool.args[0])
    *batches, channels, _ = node.meta["val"].shape
    count = math.prod(batches)
    with graph.inserting_before(node):
        images = _unflattened(pixels, [count, channels, height, width])
        if images is None:
            images = graph.call_function(aten.reshape.default, (pixels, [count, channels, height, width]))
        smaller = [count, channels, height // 2, width // 2]
        where = _unflattened(argmax, smaller)
        if where is None:
            where = graph.call_function(aten.reshape.default, (argmax, smaller))
        gathered = graph.call_function(GATHER, (images, where, _is_channels_last(pool)))
    replace_node(node, aten.reshape.default, (gathered, list(node.meta["val"].shape)))


def _unflattened(node: object, shape: list[int]) -> Node | None:
    """Return the node of this shape that ``node`` is a view of, in its better order in memory, or None."""
    while isinstance(node, Node) and node.target in _VIEWS:
        node = node.args[0]
        if isinstance(node, Node) and list(node.meta["val"].shape) == shape:
            return node
    return None
