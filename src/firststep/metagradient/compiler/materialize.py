"""Mark the results that a compiler shall write to memory, where it would compute them again at each reader.

It fuses pointwise operations into the reader. That is good where reader and result are of one size. But a
few numbers per channel (a square root, quotients) would be computed once for each pixel, and the argmax of a
window once for each of the readers of pooling, from all of its images.
"""

from __future__ import annotations

import operator
from functools import partial
from operator import getitem

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

import firststep.metagradient.compiler.kernel_gradients
import firststep.metagradient.compiler.pooling  # noqa: F401  (they define operators)
from firststep.metagradient.compiler.torch_internals import OpOverload, force_stride_order

aten = torch.ops.aten
_POOL, _UNPOOL = torch.ops.firststep.max_pool_2x2.default, torch.ops.firststep.unpool_2x2.default
_GATHER = torch.ops.firststep.gather_2x2.default
_KERNEL_GRADIENT = torch.ops.firststep.kernel_gradient.default
_MUCH_SMALLER = 64  # times fewer entries than what is computed with them
_VIEWS = {"view", "_unsafe_view", "reshape", "expand", "unsqueeze", "squeeze", "permute", "alias", "detach"}


def materialize(graph: GraphModule) -> None:
    """Change ``graph`` in place, for the compiler: what it computes stays the same."""
    to_memory = force_stride_order()
    for node, strides in _worth_it(graph).items():
        with graph.graph.inserting_after(node):
            written = graph.graph.call_function(to_memory, (node, list(strides)))
        written.meta = dict(node.meta)
        node.replace_all_uses_with(written, delete_user_cb=partial(operator.is_not, written))
    graph.recompile()


def _worth_it(graph: GraphModule) -> dict[Node, tuple[int, ...]]:
    """The results, and their order in memory."""
    found: dict[Node, tuple[int, ...]] = {}
    images = [image for node in graph.graph.nodes for image in _convolved(node)]
    if any(_is_channels_last(image) for image in images):
        for image in images:
            if image.op == "call_function" and image.target is not aten.expand.default and _size(image):
                found[image] = _strides(image, channels_last=True)
    for node in graph.graph.nodes:
        if node.target is getitem and node.args[0].target is _POOL:
            found[node] = _strides(node, channels_last=node.args[0].args[1])
        elif node.target in (_UNPOOL, _GATHER):
            if node.target is _UNPOOL and node.args[0].op == "call_function":
                found[node.args[0]] = _strides(node.args[0], channels_last=node.args[-1])
            argmax = _behind_views(node.args[1])
            if argmax.target is aten._to_copy.default:  # it was saved as bytes: see partition
                found[argmax] = _strides(argmax, channels_last=node.args[-1])
        elif _is_pointwise(node):
            for small in _much_smaller(node):
                found.setdefault(small, _strides(small))
    return found


def _convolved(node: Node) -> list[Node]:
    """The images that a convolution, or its backward pass, works on."""
    if node.target is aten.convolution.default:
        return [node.args[0]]  # type: ignore[list-item]
    backward = node.target in (aten.convolution_backward.default, _KERNEL_GRADIENT)
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
    """The inputs that are computed in the graph and of which each entry is used for many of the node."""
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
