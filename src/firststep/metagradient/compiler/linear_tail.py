"""Find the linear end of a row's graph, which can run once on the sum over all rows.

The pull-back of a row ends in an ordinary backward pass of the network. It starts from what the row adds to
the cotangents of the network's values. This pass is linear and the same for all rows, so it can run once for
the sum of the rows. It begins at the first convolution or matrix product of each cotangent.
"""

from __future__ import annotations

import operator

from torch.fx import Graph, Node

from firststep.metagradient.compiler.torch_internals import OpOverload

# Linear in the first argument if the others are the same for all rows.
_IN_FIRST = {
    "view", "_unsafe_view", "reshape", "expand", "permute", "t", "transpose", "unsqueeze", "squeeze", "slice",
    "select", "alias", "detach", "clone", "_to_copy", "neg", "sum", "mean", "threshold_backward", "gather",
    "convolution_backward", "max_pool2d_with_indices_backward", "avg_pool2d_backward", "slice_backward",
    "select_backward", "constant_pad_nd", "unpool_2x2", "gather_2x2", "kernel_gradient", "div",
}  # fmt: skip
# Linear in each of the first two arguments.
_PRODUCTS = {"mul", "mm", "bmm", "convolution"}
_HEAVY = {"mm", "bmm", "addmm", "convolution", "convolution_backward", "kernel_gradient"}


def dependents(graph: Graph, sources: list[Node]) -> set[Node]:
    """Return ``sources`` and all nodes that depend on them."""
    found = set(sources)
    for node in graph.nodes:
        if node.op != "output" and any(source in found for source in node.all_input_nodes):
            found.add(node)
    return found


def linear_tail(graph: Graph, of_row: set[Node], results: list[Node]) -> set[Node]:
    """Return the nodes that can be computed once, from inputs summed over all rows.

    Args:
        graph: the graph of one row.
        of_row: the nodes that differ between rows.
        results: the nodes to sum over all rows.
    """
    needed = _ancestors(results)
    linear: set[Node] = set()
    for node in reversed(graph.nodes):
        if node in of_row and node in needed and _is_linear(node, of_row):
            readers = [user for user in node.users if user.op != "output" and user in needed]
            if all(user in linear for user in readers):
                linear.add(node)
    tail: set[Node] = set()
    for node in graph.nodes:
        if node in linear and (_name(node) in _HEAVY or any(n in tail for n in node.all_input_nodes)):
            tail.add(node)
    return tail


def _ancestors(results: list[Node]) -> set[Node]:
    found: set[Node] = set()
    stack = list(results)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(node.all_input_nodes)
    return found


def _name(node: Node) -> str:
    return node.target.overloadpacket.__name__ if isinstance(node.target, OpOverload) else ""


def _is_linear(node: Node, of_row: set[Node]) -> bool:
    """Return whether ``node`` is jointly linear in its inputs that differ between rows.

    Unknown operations count as not linear.
    """
    if node.target is operator.getitem:
        return True  # the operation it belongs to is checked itself
    name, arguments = _name(node), node.args
    varies = [isinstance(argument, Node) and argument in of_row for argument in arguments]
    inside = sum(source in of_row for source in node.all_input_nodes)
    if inside != len({argument for argument, row in zip(arguments, varies, strict=True) if row}):
        return False  # one of them is in a list or a keyword argument
    if name in ("add", "sub"):
        return varies[:2] == [True, True]
    if name in _PRODUCTS:
        return sum(varies) == 1 and any(varies[:2]) and (name != "convolution" or arguments[2] is None)
    if name == "where":
        return not varies[0] and all(
            row or _is_zero(value) for value, row in zip(arguments[1:], varies[1:], strict=True)
        )
    if name == "div" and node.kwargs:
        return False
    return name in _IN_FIRST and varies[0] and sum(varies) == 1


def _is_zero(value: object) -> bool:
    if isinstance(value, Node):
        name = _name(value)
        number = {"scalar_tensor": 0, "full": 1, "full_like": 1}.get(name)
        return name in ("zeros", "zeros_like", "new_zeros") or (
            number is not None and _is_zero(value.args[number])
        )
    return isinstance(value, int | float) and value == 0
