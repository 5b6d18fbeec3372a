"""Rewrite a traced graph so that the compiler makes fast code of its second derivatives.

Pooling and means of what it unpools: see :mod:`pooling` and :mod:`pooled_means`.

The kernel gradient: torch differentiates a convolution's backward pass by sliding one batch of images over
another as if it were a (huge) kernel. It is the gradient in the kernel of an ordinary convolution, for which
there is a fast routine.

Rows of a Jacobian, many at once, become channels of one image for a convolution: see below.

All compute the same sums.
"""

from __future__ import annotations

from operator import getitem
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from firststep.metagradient.compiler.pooled_means import take_means_before_unpooling
from firststep.metagradient.compiler.pooling import fuse_pooling

aten = torch.ops.aten


def use_fast_kernels(graph: GraphModule, *, deep_rows: bool = False) -> None:
    """Change ``graph`` in place.

    ``deep_rows``: it is of rows of a Jacobian that reach all layers, many rows at once. Their pooling is
    replaced too then; where rows reach the last layer only, that gains nothing and takes minutes to compile.
    """
    fuse_pooling(graph.graph, moved=deep_rows)
    take_means_before_unpooling(graph.graph)
    for node in list(graph.graph.nodes):
        if node.target is aten.convolution.default:
            _kernel_gradient(graph.graph, node)
    for node in graph.graph.nodes:
        if node.target in (aten.view.default, aten._unsafe_view.default):
            node.target = aten.reshape.default  # the forms above may order memory in another way
        if deep_rows and node.target is aten.clone.default:
            # Made for such views; it would undo the channels' order.
            node.replace_all_uses_with(node.args[0], delete_user_cb=lambda user: user.op != "output")
    for node in list(graph.graph.nodes):
        if node.target in (aten.convolution.default, aten.convolution_backward.default):
            for argument in node.args[:2]:
                _merge_channels_last(graph.graph, argument)
    graph.graph.eliminate_dead_code()
    graph.recompile()


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


def _kernel_gradient(graph: Graph, node: Node) -> None:
    """conv(xᵀ, y'ᵀ) with images and channels exchanged: the transpose of the gradient in the kernel."""
    image, cotangent, bias, stride, padding, dilation, transposed, _, groups = tuple[Any, ...](node.args)
    exchanged = [_exchanged(image), _exchanged(cotangent)]
    if None in exchanged or bias is not None or transposed or groups != 1 or [*stride, *dilation] != [1] * 4:
        return
    shape = node.meta["val"].shape  # [in, out, height, width]
    with graph.inserting_before(node):
        kernel = graph.call_function(aten.new_zeros.default, (exchanged[0], [shape[1], shape[0], *shape[2:]]))
        gradients = graph.call_function(
            aten.convolution_backward.default,
            (exchanged[1], exchanged[0], kernel, None, [1, 1], padding, [1, 1], False, [0, 0], 1,
             [False, True, False]),
        )  # fmt: skip
        gradient = graph.call_function(getitem, (gradients, 1))
        result = graph.call_function(aten.transpose.int, (gradient, 0, 1))
    result.meta = dict(node.meta)
    node.replace_all_uses_with(result)
    graph.erase_node(node)


def _exchanged(node: object) -> Node | None:
    """What a node is the transpose of, in its first two dimensions."""
    if isinstance(node, Node) and node.target is aten.transpose.int and set(node.args[1:]) == {0, 1}:
        source = node.args[0]
        return source if isinstance(source, Node) else None
    return None
