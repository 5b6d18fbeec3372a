"""2x2 max-pooling and its derivatives, entry by entry, so that a compiler fuses them with what is around.

torch's own operators are walls to the compiler: what comes before is written to memory and what comes after
reads it again, filled up with zeros on the way back. The compiler's own form of the way back searches every
window and uses no vector instructions. Here pooling also says which of its four entries is the largest, as a
number of the pictures' own type: comparisons of one type are single vector instructions.

The names stay in a recorded graph until the compiler takes it, so that :mod:`split` knows pooling as work
worth handing over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import getitem

import torch
from torch import Tensor
from torch.fx import Graph, Node

aten = torch.ops.aten

# Operations on pictures that leave the order of each picture's entries alone.
_LOOKS = tuple(
    getattr(aten, name).default
    for name in ("view", "_unsafe_view", "reshape", "clone", "expand", "unsqueeze")
)


# A place means something only beside its own entry: wherever a whole batch of them is moved to.
_MOVES = (*_LOOKS, aten.permute.default)


def pool_2x2(images: Tensor, innermost: bool) -> tuple[Tensor, Tensor]:
    """The largest of each four entries, and which it is: 0 to 3, the first of equals."""
    first, second, third, fourth = _quarters(_pixels(images, innermost))
    upper, lower = torch.maximum(first, second), torch.maximum(third, fourth)
    in_upper = torch.where(second > first, images.new_ones(()), 0)
    in_lower = torch.where(fourth > third, images.new_full((), 3), 2)
    places = torch.where(lower > upper, in_lower, in_upper)
    return _images(torch.maximum(upper, lower), innermost), _images(places, innermost)


def pick_2x2(images: Tensor, places: Tensor, innermost: bool) -> Tensor:
    """The entries of the images at the places of a pooling."""
    first, second, third, fourth = _quarters(_pixels(images, innermost))
    where = _pixels(places, innermost)
    upper, lower = torch.where(where == 0, first, second), torch.where(where == 2, third, fourth)
    return _images(torch.where(where < 2, upper, lower), innermost)


def put_back_2x2(values: Tensor, places: Tensor, height: int, width: int, innermost: bool) -> Tensor:
    """The transpose of pooling: every value to its place, 0 elsewhere."""
    where = _doubled(_pixels(places, innermost))
    rows, columns = (torch.arange(n, device=places.device) % 2 for n in where.shape[-3:-1])
    here = where == (2 * rows[:, None, None] + columns[:, None]).to(places.dtype)
    back = torch.where(here, _doubled(_pixels(values, innermost)), 0.0)
    missing = (0, 0, 0, width - back.shape[-2], 0, height - back.shape[-3])  # of odd sides
    if any(missing):
        back = torch.nn.functional.pad(back, missing)
    return _images(back, innermost)


def _pixels(images: Tensor, innermost: bool) -> Tensor:
    """[..., height, width, what a pixel is in memory]: so a compiler, left to itself, keeps that order."""
    return images.permute(0, 2, 3, 1) if innermost else images.unsqueeze(-1)


def _images(pixels: Tensor, innermost: bool) -> Tensor:
    return pixels.permute(0, 3, 1, 2) if innermost else pixels.squeeze(-1)


def _quarters(pixels: Tensor) -> list[Tensor]:
    """The four entries of every window, each as a picture of a quarter of the size."""
    height, width = (size // 2 * 2 for size in pixels.shape[-3:-1])
    return [pixels[..., row:height:2, column:width:2, :] for row in (0, 1) for column in (0, 1)]


def _doubled(pixels: Tensor) -> Tensor:
    """Every entry four times."""
    *count, height, width, channels = pixels.shape
    spread = pixels[..., :, None, :, None, :].expand(*count, height, 2, width, 2, channels)
    return spread.reshape(*count, 2 * height, 2 * width, channels)


def _operators() -> torch.library.Library:
    """To a compiler each is what its body does.

    Compilers' caches know an operator by its name: what one computes may not change without its name.
    """
    library = torch.library.Library("firststep", "DEF")
    for signature, operator in (
        ("pool_2x2(Tensor images, bool innermost) -> (Tensor, Tensor)", pool_2x2),
        ("pick_2x2(Tensor images, Tensor places, bool innermost) -> Tensor", pick_2x2),
        (
            "put_back_2x2(Tensor values, Tensor places, int height, int width, bool innermost) -> Tensor",
            put_back_2x2,
        ),
    ):
        library.define(signature)
        library.impl(operator.__name__, operator, "CompositeImplicitAutograd")
    return library


# A module that is loaded again finds its operators there: they can be defined once in a process.
_library = globals().get("_library") or _operators()


def fuse_pooling(graph: Graph, *, moved: bool = False) -> None:
    """Put these operators where ``graph`` has 2x2 max-pooling and its derivatives of any order.

    ``moved``: also where the places are read after a change of their dimensions' order, as batched rows do.
    """
    ways = _MOVES if moved else _LOOKS
    for node in list(graph.nodes):
        if node.target is aten.max_pool2d_with_indices.default and _is_two_by_two(node.args):
            readers = list(_readers_of_places(node, ways))
            if all(_known(reader, node) for reader in readers):
                for reader in readers:
                    _put_back(graph, reader, node) if _goes_back(reader) else _pick(graph, reader, node)
                _replace(graph, node, torch.ops.firststep.pool_2x2.default, (node.args[0], _innermost(node)))


def _is_two_by_two(arguments: tuple[object, ...]) -> bool:
    """Of (images, kernel, stride, padding, dilation, ceil_mode), of which the last may be left out."""
    defaults: list[object] = [None, [2, 2], [2, 2], [0, 0], [1, 1], False]
    given = [*arguments[:6], *defaults[len(arguments[:6]) :]]
    given[2] = given[2] or given[1]  # no stride stands for the kernel's size
    return given[1:] == defaults[1:]


def _readers_of_places(pool: Node, ways: tuple[object, ...]) -> Iterator[Node]:
    """What computes with the places of a pooling, in whatever form they were brought in these ways before."""
    stack = [user for user in pool.users if user.target is getitem and user.args[1] == 1]
    seen: set[Node] = set()
    while stack:
        for user in stack.pop().users:
            if user in seen:
                continue
            seen.add(user)
            if user.target in ways:
                stack.append(user)
            else:
                yield user


def _known(reader: Node, pool: Node) -> bool:
    if _goes_back(reader):
        return True
    if reader.target is not aten.gather.default:
        return False
    pixels, dim = reader.args[:2]
    assert isinstance(pixels, Node)
    shape = pixels.meta["val"].shape
    return dim in (-1, len(shape) - 1) and len(shape) > 2 and shape[-1] == math.prod(_size(pool.args[0]))


def _goes_back(reader: Node) -> bool:
    back = aten.max_pool2d_with_indices_backward.default
    return reader.target is back and _is_two_by_two(reader.args[1:])


def _size(images: object) -> tuple[int, int]:
    assert isinstance(images, Node)
    height, width = images.meta["val"].shape[-2:]
    return height, width


def _innermost(pool: Node) -> bool:
    """Whether a pooling's pictures have their channels innermost in memory."""
    pooled = pool.args[0]
    assert isinstance(pooled, Node)
    value: Tensor = pooled.meta["val"]
    return value.is_contiguous(memory_format=torch.channels_last)


def _put_back(graph: Graph, node: Node, pool: Node) -> None:
    values, places = node.args[0], node.args[-1]
    pooled = pool.args[0]
    assert isinstance(pooled, Node)
    arguments = (values, places, *_size(pooled), _innermost(pool))
    _replace(graph, node, torch.ops.firststep.put_back_2x2.default, arguments)


def _pick(graph: Graph, node: Node, pool: Node) -> None:
    """gather(pixels, -1, places) of flattened pictures, the second derivative of pooling."""
    pixels, _, places = node.args[:3]
    height, width = _size(pool.args[0])
    *several, channels, _ = node.meta["val"].shape
    count = math.prod(several)
    with graph.inserting_before(node):
        pictures = _unflattened(pixels, [count, channels, height, width])
        if pictures is None:
            pictures = graph.call_function(aten.reshape.default, (pixels, [count, channels, height, width]))
        smaller = [count, channels, height // 2, width // 2]
        where = _unflattened(places, smaller)
        if where is None:
            where = graph.call_function(aten.reshape.default, (places, smaller))
        picked = graph.call_function(
            torch.ops.firststep.pick_2x2.default, (pictures, where, _innermost(pool))
        )
    _replace(graph, node, aten.reshape.default, (picked, list(node.meta["val"].shape)))


def _unflattened(node: object, shape: list[int]) -> Node | None:
    """What a node is another form of and has this shape: its order in memory is the better one."""
    while isinstance(node, Node) and node.target in _LOOKS:
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
