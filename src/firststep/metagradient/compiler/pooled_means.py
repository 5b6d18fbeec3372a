"""Means of unpooled values over the quarter of the entries that is not zero.

Let B unpool values v and let P gather entries at the argmax. Then Σ B v = Σ v and Σ x B v = Σ v P x.
The derivatives of batch norm need both sums, over the largest images of a network.
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch.fx import Graph, Node

from firststep.metagradient.compiler.pooling import GATHER, UNPOOL

aten = torch.ops.aten


def take_means_before_unpooling(graph: Graph) -> None:
    """Take means of unpooled values before unpooling, over a quarter of the entries."""
    for node in list(graph.nodes):
        if node.target is aten.mean.dim and len(node.args) == 2 and not node.kwargs:
            images, dims = node.args
            shape = images.meta["val"].shape
            if list(dims) == [len(shape) - 4, len(shape) - 2, len(shape) - 1]:
                _take_before_unpooling(graph, node, images, list(shape))


def _take_before_unpooling(graph: Graph, node: Node, images: Node, shape: list[int]) -> None:
    factors: list[Any] = list(images.args) if images.target is aten.mul.Tensor else [images]
    found = [number for number, factor in enumerate(factors) if _unpooling(factor) is not None]
    if not found or not isinstance(factors[-1], Node):
        return
    unpooled = factors.pop(found[0])  # only one: in a mean of squares both factors are the same
    if list(unpooled.meta["val"].shape) != shape:
        return
    unpooling: Any = _unpooling(unpooled)
    values, argmax, _, _, channels_last = unpooling.args
    with graph.inserting_before(node):
        for other in factors:
            wide = graph.call_function(aten.expand.default, (other, shape))
            batches = graph.call_function(aten.reshape.default, (wide, [-1, *shape[-3:]]))
            gathered = graph.call_function(GATHER, (batches, argmax, channels_last))
            product = graph.call_function(aten.mul.Tensor, (values, gathered))
            product.meta = dict(values.meta)
            values = product
        small = [*shape[:-2], *values.meta["val"].shape[-2:]]
        apart = graph.call_function(aten.reshape.default, (values, small))
        apart.meta = dict(values.meta, val=values.meta["val"].reshape(small))
        total = graph.call_function(aten.sum.dim_IntList, (apart, node.args[1]))
        total.meta = dict(node.meta)
        mean = graph.call_function(aten.div.Tensor, (total, prod(shape) // prod(node.meta["val"].shape)))
    mean.meta = dict(node.meta)
    node.replace_all_uses_with(mean)
    graph.erase_node(node)


def _unpooling(node: object) -> Node | None:
    """Return the unpooling that ``node`` is, or is a view of with another split into batches."""
    if isinstance(node, Node) and node.target in (aten.reshape.default, aten.view.default):
        shape = node.meta["val"].shape
        node = node.args[0]
        if not isinstance(node, Node) or node.meta["val"].shape[-3:] != shape[-3:]:
            return None
    return node if isinstance(node, Node) and node.target is UNPOOL else None
