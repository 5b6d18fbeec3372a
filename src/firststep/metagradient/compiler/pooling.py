"""2x2 max-pooling and its derivatives, entry by entry, so that a compiler fuses them with what is around.

The compiler cannot fuse torch's own operators: their inputs are written to memory and their results read
again, filled up with zeros in the backward pass. The compiler's own form of the backward pass searches every
window and uses no vector instructions. Here pooling also gives the argmax of its four entries, as a number of
the images' own type: comparisons of one type are single vector instructions.

The names stay in a traced graph until the compiler takes it, so that :mod:`partition` knows pooling as work
worth saving.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import getitem

import torch
from torch import Tensor
from torch.fx import Graph, Node

aten = torch.ops.aten

# Operations on images that leave the order of each image's entries alone.
_VIEWS = tuple(
    getattr(aten, name).default
    for name in ("view", "_unsafe_view", "reshape", "clone", "expand", "unsqueeze")
)


def max_pool_2x2(images: Tensor, channels_last: bool) -> tuple[Tensor, Tensor]:
    """The largest of each four entries, and which it is: 0 to 3, the first of equals."""
    first, second, third, fourth = _quarters(_pixels(images, channels_last))
    upper, lower = torch.maximum(first, second), torch.maximum(third, fourth)
    in_upper = torch.where(second > first, images.new_ones(()), 0)
    in_lower = torch.where(fourth > third, images.new_full((), 3), 2)
    argmax = torch.where(lower > upper, in_lower, in_upper)
    return _images(torch.maximum(upper, lower), channels_last), _images(argmax, channels_last)


def gather_2x2(images: Tensor, argmax: Tensor, channels_last: bool) -> Tensor:
    """The entries of the images at the argmax of a pooling."""
    first, second, third, fourth = _quarters(_pixels(images, channels_last))
    where = _pixels(argmax, channels_last)
    upper, lower = torch.where(where == 0, first, second), torch.where(where == 2, third, fourth)
    return _images(torch.where(where < 2, upper, lower), channels_last)


def unpool_2x2(values: Tensor, argmax: Tensor, height: int, width: int, channels_last: bool) -> Tensor:
    """The transpose of pooling: every value to its argmax, 0 elsewhere."""
    where = _doubled(_pixels(argmax, channels_last))
    rows, columns = (torch.arange(n, device=argmax.device) % 2 for n in where.shape[-3:-1])
    here = where == (2 * rows[:, None, None] + columns[:, None]).to(argmax.dtype)
    back = torch.where(here, _doubled(_pixels(values, channels_last)), 0.0)
    missing = (0, 0, 0, width - back.shape[-2], 0, height - back.shape[-3])  # of odd sides
    if any(missing):
        back = torch.nn.functional.pad(back, missing)
    return _images(back, channels_last)


def _pixels(images: Tensor, channels_last: bool) -> Tensor:
    """[..., height, width, what a pixel is in memory]: so a compiler, left to itself, keeps that order."""
    return images.permute(0, 2, 3, 1) if channels_last else images.unsqueeze(-1)


def _images(pixels: Tensor, channels_last: bool) -> Tensor:
    return pixels.permute(0, 3, 1, 2) if channels_last else pixels.squeeze(-1)


def _quarters(pixels: Tensor) -> list[Tensor]:
    """The four entries of every window, each as an image of a quarter of the size."""
    height, width = (size // 2 * 2 for size in pixels.shape[-3:-1])
    return [pixels[..., row:height:2, column:width:2, :] for row in (0, 1) for column in (0, 1)]


def _doubled(pixels: Tensor) -> Tensor:
    """Every entry four times."""
    *count, height, width, channels = pixels.shape
    spread = pixels[..., :, None, :, None, :].expand(*count, height, 2, width, 2, channels)
    return spread.reshape(*count, 2 * height, 2 * width, channels)


def _operators() -> torch.library.Library:
    """To a compiler each is what its body does."""
    library = torch.library.Library("firststep", "DEF")
    for signature, operator in (
        ("max_pool_2x2(Tensor images, bool channels_last) -> (Tensor, Tensor)", max_pool_2x2),
        ("gather_2x2(Tensor images, Tensor argmax, bool channels_last) -> Tensor", gather_2x2),
        (
            "unpool_2x2(Tensor values, Tensor argmax, int height, int width, bool channels_last) -> Tensor",
            unpool_2x2,
        ),
    ):
        library.define(signature)
        library.impl(operator.__name__, operator, "CompositeImplicitAutograd")
    return library


# A module that is loaded again finds its operators there: they can be defined once in a process.
_library = globals().get("_library") or _operators()


def fuse_pooling(graph: Graph) -> None:
    """Use these operators where ``graph`` has 2x2 max-pooling and its derivatives of any order."""
    for node in list(graph.nodes):
        if node.target is aten.max_pool2d_with_indices.default and _is_two_by_two(node.args):
            users = list(_users_of_argmax(node))
            if all(_known(user, node) for user in users):
                for user in users:
                    _unpool(graph, user, node) if _is_backward(user) else _gather(graph, user, node)
                arguments = (node.args[0], _is_channels_last(node))
                _replace(graph, node, torch.ops.firststep.max_pool_2x2.default, arguments)


def _is_two_by_two(arguments: tuple[object, ...]) -> bool:
    """Of (images, kernel, stride, padding, dilation, ceil_mode), of which the last may be left out."""
    defaults: list[object] = [None, [2, 2], [2, 2], [0, 0], [1, 1], False]
    given = [*arguments[:6], *defaults[len(arguments[:6]) :]]
    given[2] = given[2] or given[1]  # no stride stands for the kernel's size
    return given[1:] == defaults[1:]


def _users_of_argmax(pool: Node) -> Iterator[Node]:
    """What computes with the argmax of a pooling, directly or after views of it."""
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


def _known(user: Node, pool: Node) -> bool:
    if _is_backward(user):
        return True
    if user.target is not aten.gather.default:
        return False
    pixels, dim = user.args[:2]
    assert isinstance(pixels, Node)
    shape = pixels.meta["val"].shape
    return dim in (-1, len(shape) - 1) and len(shape) > 2 and shape[-1] == math.prod(_size(pool.args[0]))


def _is_backward(user: Node) -> bool:
    back = aten.max_pool2d_with_indices_backward.default
    return user.target is back and _is_two_by_two(user.args[1:])


def _size(images: object) -> tuple[int, int]:
    assert isinstance(images, Node)
    height, width = images.meta["val"].shape[-2:]
    return height, width


def _is_channels_last(pool: Node) -> bool:
    """Whether a pooling's images have all channels of a pixel side by side in memory."""
    pooled = pool.args[0]
    assert isinstance(pooled, Node)
    value: Tensor = pooled.meta["val"]
    return value.is_contiguous(memory_format=torch.channels_last)


def _unpool(graph: Graph, node: Node, pool: Node) -> None:
    values, argmax = node.args[0], node.args[-1]
    pooled = pool.args[0]
    assert isinstance(pooled, Node)
    arguments = (values, argmax, *_size(pooled), _is_channels_last(pool))
    _replace(graph, node, torch.ops.firststep.unpool_2x2.default, arguments)


def _gather(graph: Graph, node: Node, pool: Node) -> None:
    """gather(pixels, -1, argmax) of flattened images, the second derivative of pooling."""
    pixels, _, argmax = node.args[:3]
    height, width = _size(pool.args[0])
    *several, channels, _ = node.meta["val"].shape
    count = math.prod(several)
    with graph.inserting_before(node):
        images = _unflattened(pixels, [count, channels, height, width])
        if images is None:
            images = graph.call_function(aten.reshape.default, (pixels, [count, channels, height, width]))
        smaller = [count, channels, height // 2, width // 2]
        where = _unflattened(argmax, smaller)
        if where is None:
            where = graph.call_function(aten.reshape.default, (argmax, smaller))
        gathered = graph.call_function(
            torch.ops.firststep.gather_2x2.default, (images, where, _is_channels_last(pool))
        )
    _replace(graph, node, aten.reshape.default, (gathered, list(node.meta["val"].shape)))


def _unflattened(node: object, shape: list[int]) -> Node | None:
    """The node of this shape that a node is a view of: its order in memory is the better one."""
    while isinstance(node, Node) and node.target in _VIEWS:
        node = node.args[0]
        if isinstance(node, Node) and list(node.meta["val"].shape) == shape:
            return node
    return None


def _replace(graph: Graph, node: Node, target: object, arguments: tuple[object, ...]) -> None:
    with graph.inserting_before(node):
        new = graph.call_function(target, arguments)  # type: ignore[arg-type]
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    graph.erase_node(node)
