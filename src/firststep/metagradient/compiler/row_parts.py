"""Split the graph of a Jacobian row and its pull-back, so that work shared by all rows runs once.

shared      forward pass of the network                         once
row         backward pass of one residual                       per row
pull-back   second derivative against a fixed vector            per row, added to totals
finish      backward pass from the totals to the gradient       once
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from firststep.metagradient.compiler.linear_tail import dependents, linear_tail
from firststep.metagradient.compiler.partition import CHEAP, extract, partition
from firststep.metagradient.compiler.torch_internals import OpOverload

aten = torch.ops.aten
_NOT_VIEWS = {"clone", "_to_copy", "max_pool2d_with_indices_backward", "unpool_2x2"}


class RowParts(NamedTuple):
    shared: GraphModule
    """(support) → values that the other parts read."""
    row: GraphModule
    """(support, values, unit) → (row, saved tensors)."""
    pull_back: GraphModule
    """(support, values, unit, fixed, totals, saved) → nothing; adds to the totals in place."""
    finish: GraphModule
    """(support, values, totals) → gradient."""
    totals: list[Tensor]
    """Shapes, dtypes and strides of the totals."""


def row_parts(graph: GraphModule, support: int, rows: int) -> RowParts:
    """Split ``graph``: (support, unit, fixed) → (row, gradient).

    Args:
        graph: the graph of one row.
        support: number of leading inputs that are the support set and parameters.
        rows: number of leading outputs that form the row.
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
    """Return the row-independent nodes that the other parts read. Views are recomputed there."""
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
    """Return whether a node is a view or a constant."""
    name = node.target.overloadpacket.__name__ if isinstance(node.target, OpOverload) else ""
    return name in CHEAP - _NOT_VIEWS


def _add_in_place(part: GraphModule, before: int, added: list[Node]) -> GraphModule:
    """Insert the totals as arguments after the first ``before``, and add the results to them in place."""
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
