"""Write a recorded graph so that the compiler makes fast code of its second derivatives.

Pooling: see :mod:`pooling`.

The kernel gradient: torch differentiates a convolution's backward pass by sliding one batch of images over
another as if it were a (huge) kernel. It is the gradient in the kernel of an ordinary convolution, for which
there is a fast routine.

Both compute the same sums.
"""

from __future__ import annotations

from operator import getitem
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from firststep.metagradient.pooling import fuse_pooling

aten = torch.ops.aten


def use_fast_kernels(graph: GraphModule, *, deep_rows: bool = False) -> None:
    """Change ``graph`` in place.

    ``deep_rows``: it is of rows of a Jacobian that reach all layers, many rows at once. Their pooling is
    replaced too then; where rows reach the last layer only, that gains nothing and takes minutes to compile.
    """
    fuse_pooling(graph.graph, moved=deep_rows)
    for node in list(graph.graph.nodes):
        if node.target is aten.convolution.default:
            _kernel_gradient(graph.graph, node)
    for node in graph.graph.nodes:
        if node.target in (aten.view.default, aten._unsafe_view.default):
            node.target = aten.reshape.default  # the forms above may order memory in another way
        if deep_rows and node.target is aten.clone.default:
            # Made for such views; it would undo the channels' order.
            node.replace_all_uses_with(node.args[0], delete_user_cb=lambda user: user.op != "output")
    graph.graph.eliminate_dead_code()
    graph.recompile()


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
