"""Sums over images in two stages: over a few pixels that lie side by side in memory, then over the rest.

For the sum of every channel the compiler makes one loop over all pixels for each eight channels. Where the
channels are innermost in memory, each of these loops reads a part of every pixel, so that the images come
from memory several times. Pixels that are few enough to stay in the processor's cache come from there once.

The same sums, in another order.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.fx import Graph, Node

aten = torch.ops.aten
_CACHE = 2**15  # bytes that the processor's first cache holds


def sum_in_two_stages(graph: Graph) -> None:
    """Change ``graph`` in place where it has sums, or means, of the channels of images on a CPU."""
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
