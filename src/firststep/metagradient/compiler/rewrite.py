"""Rewrite a traced graph so that the compiler makes fast code of its second derivatives.

Pooling and means of what it unpools: see :mod:`pooling` and :mod:`pooled_means`. Gradients in the kernels of
convolutions: see :mod:`kernel_gradients`.

Rows of a Jacobian, many at once, become channels of one image for a convolution: see below.

All compute the same sums.
"""

from __future__ import annotations

import torch
from torch.fx import Graph, GraphModule, Node

from firststep.metagradient.compiler.kernel_gradients import use_fast_kernel_gradients
from firststep.metagradient.compiler.pooled_means import take_means_before_unpooling
from firststep.metagradient.compiler.pooling import fuse_pooling

aten = torch.ops.aten
_CONVOLUTIONS = (
    aten.convolution.default,
    aten.convolution_backward.default,
    torch.ops.firststep.kernel_gradient.default,
)


def use_fast_kernels(graph: GraphModule) -> None:
    """Change ``graph`` in place."""
    fuse_pooling(graph.graph)
    drop_added_zeros(graph.graph)
    take_means_before_unpooling(graph.graph)
    use_fast_kernel_gradients(graph.graph)
    for node in graph.graph.nodes:
        if node.target in (aten.view.default, aten._unsafe_view.default):
            node.target = aten.reshape.default  # the forms above may order memory in another way
    for node in list(graph.graph.nodes):
        if node.target in _CONVOLUTIONS:
            for argument in node.args[:2]:
                _merge_channels_last(graph.graph, argument)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def drop_added_zeros(graph: Graph) -> None:
    """x + 0 → x, in place: second derivatives of pooling add zeros, which hide what they are added to."""
    for node in list(graph.nodes):
        if node.target is aten.add.Tensor and not node.kwargs:
            for zero, other in (node.args[:2], node.args[1::-1]):
                if _is_zeros(zero) and isinstance(other, Node) and _same_form(node, other):
                    node.replace_all_uses_with(other)
                    graph.erase_node(node)
                    break


def _is_zeros(node: object) -> bool:
    return isinstance(node, Node) and node.target in (
        aten.zeros.default,
        aten.zeros_like.default,
        aten.new_zeros.default,
    )


def _same_form(one: Node, other: Node) -> bool:
    mine, theirs = one.meta["val"], other.meta["val"]
    return bool(mine.shape == theirs.shape and mine.dtype == theirs.dtype)


def _merge_channels_last(graph: Graph, node: object) -> None:
    """Where rows' channels become those of one image: arrange them channels last at once.

    [n, rows, channels, height, width] → [n, rows channels, height, width], of which a compiler would make a
    copy with the width last, and then another.
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
