"""Mark the results that the compiler must store instead of recomputing them in every reader.

The compiler fuses pointwise operations into their readers. That is good if both have the same size. But it
would also compute a few numbers per channel (a square root, a quotient) once per pixel, and the argmax of
pooling once per reader, from all images.
"""

from __future__ import annotations

import operator
from functools import partial
from operator import getitem

import torch
from torch import Tensor
from torch.fx import Graph, Node

from firststep.metagradient.compiler.kernel_gradients import KERNEL_GRADIENT
from firststep.metagradient.compiler.pooling import GATHER, POOL, UNPOOL
from firststep.metagradient.compiler.torch_internals import OpOverload, force_stride_order

aten = torch.ops.aten
_MUCH_SMALLER = 64  # an input with at most 1/64 of the entries of the result
_VIEWS = {"view", "_unsafe_view", "reshape", "expand", "unsqueeze", "squeeze", "permute", "alias", "detach"}


def materialize(graph: Graph) -> None:
    """Store results that the compiler would recompute per reader, with the channels innermost."""
    store = force_stride_order()
    for node, strides in _to_store(graph).items():
        with graph.inserting_after(node):
            stored = graph.call_function(store, (node, list(strides)))
        stored.meta = dict(node.meta)
        node.replace_all_uses_with(stored, delete_user_cb=partial(operator.is_not, stored))


def _to_store(graph: Graph) -> dict[Node, tuple[int, ...]]:
    """Return the nodes to store and their strides in memory."""
    found: dict[Node, tuple[int, ...]] = {}
    images = [image for node in graph.nodes for image in _convolved(node)]
    if any(_is_channels_last(image) for image in images):
        for image in images:
            if image.op == "call_function" and image.target is not aten.expand.default and _size(image):
                found[image] = _strides(image, channels_last=True)
    for node in graph.nodes:
        if node.target is getitem and node.args[0].target is POOL:
            found[node] = _strides(node, channels_last=node.args[0].args[1])
        elif node.target in (UNPOOL, GATHER):
            if node.target is UNPOOL and node.args[0].op == "call_function":
                found[node.args[0]] = _strides(node.args[0], channels_last=node.args[-1])
            argmax = _behind_views(node.args[1])
            if argmax.target is aten._to_copy.default:  # saved as bytes: see partition.py
                found[argmax] = _strides(argmax, channels_last=node.args[-1])
        elif _is_pointwise(node):
            for small in _much_smaller(node):
                found.setdefault(small, _strides(small))
    return found


def _convolved(node: Node) -> list[Node]:
    """Return the images that a convolution or its backward pass reads."""
    if node.target is aten.convolution.default:
        return [node.args[0]]  # type: ignore[list-item]
    backward = node.target in (aten.convolution_backward.default, KERNEL_GRADIENT)
    return list(node.args[:2]) if backward else []  # type: ignore[arg-type]


def _is_channels_last(node: Node) -> bool:
    value = node.meta.get("val")
    last = torch.channels_last
    return value is not None and value.is_contiguous(memory_format=last) and not value.is_contiguous()


def _strides(node: Node, channels_last: bool = False) -> tuple[int, ...]:
    value: Tensor = node.meta["val"]
    order = torch.channels_last if channels_last else torch.contiguous_format
    return torch.empty(value.shape, device="meta").to(memory_format=order).stride()


def _is_pointwise(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and torch.Tag.pointwise in node.target.tags


def _much_smaller(node: Node) -> list[Node]:
    """Return the computed inputs of ``node`` of which each entry serves many entries of the result."""
    found = []
    for source in node.all_input_nodes:
        source = _behind_views(source)
        if source.op == "call_function" and 1 < _size(source) <= _size(node) // _MUCH_SMALLER:
            found.append(source)
    return found


def _behind_views(node: Node) -> Node:
    while isinstance(node.target, OpOverload) and node.target.overloadpacket.__name__ in _VIEWS:
        node = node.all_input_nodes[0]
    return node


def _size(node: Node) -> int:
    value = node.meta.get("val")
    return value.numel() if isinstance(value, Tensor) else 0
