"""Cut the graph of one row of a Jacobian and its pull-back so that nothing is computed for every row in vain.

shared      the network's own pass                              once
row         a backward pass for one residual                    for each row
pull-back   the second derivative against a fixed vector        for each row, added to totals
finish      from the totals to the gradient: a backward pass    once
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from firststep.metagradient.compiler.linear_tail import dependents, linear_tail
from firststep.metagradient.compiler.partition import NO_WORK, extract, partition
from firststep.metagradient.compiler.torch_internals import OpOverload

aten = torch.ops.aten
_WORK = {"clone", "_to_copy", "max_pool2d_with_indices_backward", "unpool_2x2"}


class RowParts(NamedTuple):
    shared: GraphModule
    """(support) → values that the other parts need."""
    row: GraphModule
    """(support, values, unit) → (row, then what is saved for its pull-back)."""
    pull_back: GraphModule
    """(support, values, unit, fixed, totals, saved) → nothing; adds to the totals in place."""
    finish: GraphModule
    """(support, values, totals) → gradient."""
    totals: list[Tensor]
    """Of which shapes, types and strides the totals are."""


def row_parts(graph: GraphModule, support: int, rows: int) -> RowParts:
    """Cut ``graph``: (support, unit, fixed) → (row, gradient).

    So many of its first inputs are the support set and the parameters, so many of its first results the row.
    """
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    results = list(output.args[0])
    gradient = [node for node in results[rows:] if isinstance(node, Node)]
    of_row = dependents(graph.graph, inputs[support:])
    tail = linear_tail(graph.graph, of_row, gradient)
    summed = [node for node in graph.graph.nodes if node in of_row and node not in tail]
    added = [node for node in summed if node in gradient or any(user in tail for user in node.users)]
    values = _read_by(graph, of_row, set(inputs))
    given = [*inputs[:support], *values]
    finish = extract(graph, [*given, *added], results[rows:], {})
    each = extract(graph, [*given, *inputs[support:]], results[:rows] + added, {})
    parts = partition(each, len(given) + 1, rows)
    pull_back = _add_in_place(parts.backward, len(given) + len(inputs) - support, added)
    return RowParts(
        shared=extract(graph, inputs[:support], list(values), {}),
        row=parts.forward,
        pull_back=pull_back,
        finish=finish,
        totals=[node.meta["val"] for node in added],
    )


def _read_by(graph: GraphModule, of_row: set[Node], inputs: set[Node]) -> list[Node]:
    """What the rows, and the part after them, read of what is the same for all; views are taken anew."""
    found: dict[Node, None] = {}
    stack = [source for node in graph.graph.nodes if node in of_row for source in node.all_input_nodes]
    while stack:
        node = stack.pop()
        if node in of_row or node in inputs or node.op == "get_attr":
            continue
        if _is_view(node):
            stack.extend(node.all_input_nodes)
        else:
            found[node] = None
    return [node for node in graph.graph.nodes if node in found]


def _is_view(node: Node) -> bool:
    """Or a constant."""
    name = node.target.overloadpacket.__name__ if isinstance(node.target, OpOverload) else ""
    return name in NO_WORK - _WORK


def _add_in_place(part: GraphModule, before: int, added: list[Node]) -> GraphModule:
    """With the totals as arguments after the first ``before``, to which its results are added."""
    graph = part.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in graph.nodes if node.op == "output")
    totals: list[Node] = []
    with graph.inserting_after(placeholders[before - 1]):
        for number, node in reversed(list(enumerate(added))):
            total = graph.placeholder(f"total_{number}")
            total.meta = dict(node.meta)
            totals.insert(0, total)
    with graph.inserting_before(output):
        for total, result in zip(totals, output.args[0], strict=True):
            new = graph.call_function(aten.add.Tensor, (total, result))
            new.meta = dict(total.meta)
            written = graph.call_function(aten.copy_.default, (total, new))
            written.meta = dict(total.meta)
    output.args = ([],)
    part.recompile()
    return part
