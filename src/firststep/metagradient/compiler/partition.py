"""Cut the graph of a step and its pull-back in two, so that the backward part starts from saved results.

The forward part is everything that the step's results need. The backward part needs some of what it computes
again. Products, convolutions, reductions and pooling are saved for backward; pointwise operations are done
once more from what is saved, because a compiler fuses them into their reader, where they cost less than
memory traffic. About two tensors per convolution are saved.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node

from firststep.metagradient.compiler.torch_internals import OpOverload

# Views, constants, and the transpose of pooling.
_NO_WORK = {
    "view", "_unsafe_view", "reshape", "expand", "permute", "t", "transpose", "unsqueeze", "squeeze", "slice",
    "select", "detach", "alias", "clone", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like",
    "new_zeros", "new_ones", "scalar_tensor", "arange", "empty_like", "_to_copy", "lift_fresh_copy", "fill",
    "max_pool2d_with_indices_backward", "unpool_2x2",
}  # fmt: skip


class Partition(NamedTuple):
    forward: GraphModule
    """(its inputs) → (its results, then what is saved for backward)."""
    backward: GraphModule
    """(all inputs, then what was saved) → the other results."""


def partition(graph: GraphModule, forward_inputs: int, forward_outputs: int) -> Partition:
    """Cut ``graph``, whose first inputs and results, this many of each, are those of the forward part."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    results = list(output.args[0])
    ahead, behind = results[:forward_outputs], results[forward_outputs:]
    saved = _saved_for_backward(behind, _needed(ahead, stop=set()), set(inputs))
    return Partition(
        forward=_extract(graph, inputs[:forward_inputs], ahead + saved),
        backward=_extract(graph, inputs + saved, behind),
    )


def _needed(results: list[object], stop: set[Node]) -> set[Node]:
    """The nodes that these results are computed from, up to those of ``stop``."""
    found: set[Node] = set()
    stack = [result for result in results if isinstance(result, Node)]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            if node not in stop:
                stack.extend(node.all_input_nodes)
    return found


def _saved_for_backward(results: list[object], in_forward: set[Node], inputs: set[Node]) -> list[Node]:
    saved: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = [result for result in results if isinstance(result, Node)]
    while stack:
        node = stack.pop()
        if node in seen or node in inputs:
            continue
        seen.add(node)
        # One of an operation's several results is available even where the forward part does not use it.
        known = (
            node.all_input_nodes[0] in in_forward if node.target is operator.getitem else node in in_forward
        )
        if known and not _cheap(node):
            saved[node] = None
        else:
            stack.extend(node.all_input_nodes)
    return list(saved)


def _cheap(node: Node) -> bool:
    if node.op == "get_attr":
        return True
    if node.target is operator.getitem or not isinstance(node.target, OpOverload):
        return False  # one of several results of an operation: saved by itself
    name = node.target.overloadpacket.__name__
    return torch.Tag.pointwise in node.target.tags or name in _NO_WORK


def _extract(graph: GraphModule, inputs: list[Node], results: list[object]) -> GraphModule:
    """The part of the graph between these nodes as a graph of its own, in the old order."""
    part = Graph()
    copies: dict[Node, Node] = {}
    for number, node in enumerate(inputs):
        copies[node] = part.placeholder(f"input_{number}")
        copies[node].meta = dict(node.meta)
    needed = _needed(results, stop=set(inputs))
    for node in graph.graph.nodes:
        if node in needed and node not in copies:
            copies[node] = part.node_copy(node, copies.__getitem__)
    part.output([copies[item] if isinstance(item, Node) else None for item in results])
    return GraphModule(graph, part)
