"""Passes that remove what a traced graph computes for nothing."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from firststep.metagradient.compiler.torch_internals import eliminate_common_subexpressions

aten = torch.ops.aten
_ZEROS = (aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default)


def drop_detach(graph: Graph) -> None:
    """Remove `detach`, which has no effect without autograd but hides equal nodes."""
    for node in graph.nodes:
        if node.target is aten.detach.default:
            node.replace_all_uses_with(node.args[0])


def merge_equal_operations(graph: Graph) -> None:
    """Compute once what was traced twice, such as the forward pass of a subset's Gram matrix."""
    merged = eliminate_common_subexpressions(graph)
    for node in reversed(list(graph.nodes)):
        graph.erase_node(node)
    graph.output(graph.graph_copy(merged, {}))


def drop_added_zeros(graph: Graph) -> None:
    """Replace x + 0 by x: second derivatives of pooling add zeros, which hide x from later passes."""
    for node in list(graph.nodes):
        if node.target is aten.add.Tensor and not node.kwargs:
            for zero, other in (node.args[:2], node.args[1::-1]):
                if _is_zeros(zero) and isinstance(other, Node) and _same_form(node, other):
                    node.replace_all_uses_with(other)
                    graph.erase_node(node)
                    break


def _is_zeros(node: object) -> bool:
    return isinstance(node, Node) and node.target in _ZEROS


def _same_form(node: Node, other: Node) -> bool:
    one, two = node.meta["val"], other.meta["val"]
    return bool(one.shape == two.shape and one.dtype == two.dtype)
