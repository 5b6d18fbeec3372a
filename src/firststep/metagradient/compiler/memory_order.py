"""Passes that keep the channels of images innermost in memory."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from firststep.metagradient.compiler.kernel_gradients import KERNEL_GRADIENT

aten = torch.ops.aten
_CONVOLUTIONS = (aten.convolution.default, aten.convolution_backward.default, KERNEL_GRADIENT)


def turn_views_into_reshapes(graph: Graph) -> None:
    """Turn `view` into `reshape`: earlier passes may have changed the order in memory."""
    for node in graph.nodes:
        if node.target in (aten.view.default, aten._unsafe_view.default):
            node.target = aten.reshape.default


def keep_merged_rows_channels_last(graph: Graph) -> None:
    """Merge Jacobian rows into a convolution's channels in one channels-last copy, not two copies."""
    for node in list(graph.nodes):
        if node.target in _CONVOLUTIONS:
            for argument in node.args[:2]:
                _merge_channels_last(graph, argument)


def _merge_channels_last(graph: Graph, node: object) -> None:
    """Rewrite the reshape [n, rows, channels, height, width] → [n, rows · channels, height, width].

    The compiler would first copy it with the width innermost, and then once more.
    """
    if not (isinstance(node, Node) and node.target is aten.reshape.default):
        return
    source = node.args[0]
    assert isinstance(source, Node)
    before = source.meta["val"].shape if "val" in source.meta else ()
    n, channels, *size = node.meta["val"].shape
    if list(before[:1]) != [n] or list(before[3:]) != size or len(before) != 5:
        return
    with graph.inserting_before(node):
        pixels = graph.call_function(aten.permute.default, (source, [0, 3, 4, 1, 2]))
        merged = graph.call_function(aten.reshape.default, (pixels, [n, *size, channels]))
        images = graph.call_function(aten.permute.default, (merged, [0, 3, 1, 2]))
    images.meta = dict(node.meta)
    node.replace_all_uses_with(images)
