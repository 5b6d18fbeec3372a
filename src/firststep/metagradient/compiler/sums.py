"""Sums over images in two stages: over a few adjacent pixels, then over the rest.

To sum per channel, the compiler loops over all pixels once per eight channels. If the channels are innermost
in memory, every loop reads a part of every pixel, so the images are read from memory several times. A first
stage over so few pixels that they stay in the cache reads them once. The sums have another order.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.fx import Graph, Node

aten = torch.ops.aten
_CACHE = 2**15  # bytes of the L1 cache


def sum_in_two_stages(graph: Graph) -> None:
    """Split sums and means per channel into two stages, so that images are read once."""
    for node in list(graph.nodes):
        if node.target in (aten.sum.dim_IntList, aten.mean.dim) and len(node.args) == 2 and not node.kwargs:
            images, dims = node.args
            value = images.meta.get("val")
            if value is not None and value.device.type == "cpu" and value.dim() == 4 and dims == [0, 2, 3]:
                _split(graph, node, images, value)


def _split(graph: Graph, node: Node, images: Node, value: Tensor) -> None:
    whole_image = value[0].numel() * value.element_size() <= _CACHE
    first, second = ([2, 3], [0]) if whole_image else ([3], [0, 2])
    with graph.inserting_before(node):
        parts = graph.call_function(aten.sum.dim_IntList, (images, first))
        parts.meta = dict(node.meta, val=value.sum(first))
        total = graph.call_function(aten.sum.dim_IntList, (parts, second))
        total.meta = dict(node.meta)
        if node.target is aten.mean.dim:
            total = graph.call_function(aten.div.Tensor, (total, math.prod(value.shape) // value.shape[1]))
            total.meta = dict(node.meta)
    node.replace_all_uses_with(total)
    graph.erase_node(node)
