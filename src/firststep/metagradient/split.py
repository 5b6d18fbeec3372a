"""Cut a recorded step-and-pull-back in two, so that the second half starts from what the first computed.

The first half is everything that the step's results need. Of what it computes, the second half needs some
again. Products, convolutions, reductions and pooling are handed over; operations that go entry by entry are
done once more from what is handed over, because a compiler fuses them into their reader, where they cost
less than memory traffic. What is handed over is then about two tensors per convolution.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node

# Operations that only look at a tensor in another way, make a constant, or put entries where they came from.
_NO_WORK = {
    "view", "_unsafe_view", "reshape", "expand", "permute", "t", "transpose", "unsqueeze", "squeeze", "slice",
    "select", "detach", "alias", "clone", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like",
    "new_zeros", "new_ones", "scalar_tensor", "arange", "empty_like", "_to_copy", "lift_fresh_copy", "fill",
    "max_pool2d_with_indices_backward", "put_back_2x2",
}  # fmt: skip


class Halves(NamedTuple):
    first: GraphModule
    """(its inputs) → (its results, then what is handed over)."""
    second: GraphModule
    """(all inputs, then what is handed over) → the other results."""
    handed_over: int
    """How many tensors."""


def split(graph: GraphModule, first_inputs: int, first_outputs: int) -> Halves:
    """Cut ``graph``, whose first inputs and results, so many of each, are the first half's."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    results = list(output.args[0])
    ahead, behind = results[:first_outputs], results[first_outputs:]
    in_first = _needed(ahead, stop=set())
    handed = _hand_over(behind, in_first, set(inputs))
    return Halves(
        first=_extract(graph, inputs[:first_inputs], ahead + handed),
        second=_extract(graph, inputs + handed, behind),
        handed_over=len(handed),
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


def _hand_over(results: list[object], in_first: set[Node], inputs: set[Node]) -> list[Node]:
    handed: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = [result for result in results if isinstance(result, Node)]
    while stack:
        node = stack.pop()
        if node in seen or node in inputs:
            continue
        seen.add(node)
        # One of an operation's several results can be had even where the first half does not use that one.
        known = node.all_input_nodes[0] in in_first if node.target is operator.getitem else node in in_first
        if known and not _cheap(node):
            handed[node] = None
        else:
            stack.extend(node.all_input_nodes)
    return list(handed)


def _cheap(node: Node) -> bool:
    if node.op == "get_attr":
        return True
    if node.target is operator.getitem or not isinstance(node.target, torch._ops.OpOverload):
        return False  # one of several results of an operation: handed over by itself
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
