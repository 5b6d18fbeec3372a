"""Cut the graph of a step and its pull-back in two, so that the backward part starts from saved results.

The forward part is everything that the step's results need. The backward part needs some of what it computes
again. Products, convolutions, reductions and pooling are saved for backward; pointwise operations are done
once more from what is saved, because a compiler fuses them into their reader, where they cost less than
memory traffic. Of a pooling the argmax is saved, a byte for each result: the results are entries of its
images, which are computed from what is saved. Large results of a first layer that reads three channels are
computed again too: 27 multiplications an entry take little longer than reading it, and they are most of a
step's memory. About two tensors per other convolution are saved.

What is saved may be rounded to a smaller type meanwhile: the way back then starts from rounded values.
"""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

import firststep.metagradient.compiler.pooling  # noqa: F401  (defines the operators)
from firststep.metagradient.compiler.torch_internals import OpOverload, part_of

_POOL, _GATHER = torch.ops.firststep.max_pool_2x2.default, torch.ops.firststep.gather_2x2.default

# Views, constants, and the transpose of pooling.
NO_WORK = {
    "view", "_unsafe_view", "reshape", "expand", "permute", "t", "transpose", "unsqueeze", "squeeze", "slice",
    "select", "detach", "alias", "clone", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like",
    "new_zeros", "new_ones", "scalar_tensor", "arange", "empty_like", "_to_copy", "lift_fresh_copy", "fill",
    "max_pool2d_with_indices_backward", "unpool_2x2",
}  # fmt: skip

_FEW_ENTRIES = 32  # of a kernel's input side
_LARGE = 2**24  # bytes: more than the caches that a core has


class Partition(NamedTuple):
    forward: GraphModule
    """(its inputs) → (its results, then what is saved for backward)."""
    backward: GraphModule
    """(all inputs, then what was saved) → the other results."""


def partition(
    graph: GraphModule, forward_inputs: int, forward_outputs: int, saved_dtype: torch.dtype | None = None
) -> Partition:
    """Cut ``graph``, whose first inputs and results, this many of each, are those of the forward part.

    ``saved_dtype``: of saved images and sequences; features, logits and Gram matrices are not rounded.
    """
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    results = list(output.args[0])
    ahead, behind = results[:forward_outputs], results[forward_outputs:]
    in_forward = needed(ahead, set(), {})
    pooled = _pooled(graph.graph, in_forward)
    saved = _saved_for_backward(behind, in_forward, set(inputs), pooled)
    parts = Partition(
        forward=extract(graph, inputs[:forward_inputs], ahead + saved, {}),
        backward=extract(graph, inputs + saved, behind, pooled),
    )
    types = {argmax: values.meta["val"].dtype for values, argmax in pooled.items()}
    for number, node in enumerate(saved):
        where = len(ahead) + number, len(inputs) + number
        if node in types:  # only while saved: of bytes the compiler would unpool without vector instructions
            _save_as(parts, *where, torch.uint8, types[node])
        elif saved_dtype is not None and _has_pixels(node):
            _save_as(parts, *where, saved_dtype, node.meta["val"].dtype)
    for part in parts:
        part.recompile()
    return parts


def _has_pixels(node: Node) -> bool:
    """Nearly all of the memory. The smallest eigenvalues of a rounded matrix would be noise."""
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.is_floating_point() and value.dim() > 2


def _save_as(
    parts: Partition, result: int, argument: int, saved_dtype: torch.dtype, dtype: torch.dtype
) -> None:
    """A result of the forward part that is an argument of the backward part, of another type in between."""
    (output,) = (node for node in parts.forward.graph.nodes if node.op == "output")
    values = list(output.args[0])
    with parts.forward.graph.inserting_before(output):
        values[result] = _converted(parts.forward.graph, values[result], saved_dtype)
    output.args = (values,)
    placeholders = [node for node in parts.backward.graph.nodes if node.op == "placeholder"]
    saved = placeholders[argument]
    with parts.backward.graph.inserting_after(placeholders[-1]):
        converted = _converted(parts.backward.graph, saved, dtype)
    saved.replace_all_uses_with(converted, delete_user_cb=partial(operator.is_not, converted))


def _converted(graph: Graph, node: Node, dtype: torch.dtype) -> Node:
    new = graph.call_function(torch.ops.aten._to_copy.default, (node,), {"dtype": dtype})
    new.meta = dict(node.meta)
    return new


def _pooled(graph: Graph, in_forward: set[Node]) -> dict[Node, Node]:
    """The results of the forward part's poolings, and their argmax."""
    found: dict[Node, Node] = {}
    for pool in list(graph.nodes):
        if pool.target is _POOL and pool in in_forward:
            of_number = {user.args[1]: user for user in pool.users}
            if 0 in of_number and 1 in of_number:
                found[of_number[0]] = of_number[1]
    return found


def _sources(node: Node, pooled: dict[Node, Node]) -> list[Node]:
    """What a node is computed from; a pooling's result from its images and the argmax."""
    return [*node.args[0].all_input_nodes, pooled[node]] if node in pooled else node.all_input_nodes  # type: ignore[union-attr]


def needed(results: list[object], stop: set[Node], pooled: dict[Node, Node]) -> set[Node]:
    """The nodes that these results are computed from, up to those of ``stop``."""
    found: set[Node] = set()
    stack = [result for result in results if isinstance(result, Node)]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            if node not in stop:
                stack.extend(_sources(node, pooled))
    return found


def _saved_for_backward(
    results: list[object], in_forward: set[Node], inputs: set[Node], pooled: dict[Node, Node]
) -> list[Node]:
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
        if known and node not in pooled and not _cheap(node) and not _is_large_first_layer(node, inputs):
            saved[node] = None
        else:
            stack.extend(_sources(node, pooled))
    return list(saved)


def _is_large_first_layer(node: Node, inputs: set[Node]) -> bool:
    """A convolution of the images themselves, of few channels, whose results are large."""
    if node.target is not torch.ops.aten.convolution.default or not inputs.issuperset(node.all_input_nodes):
        return False
    value, kernel = (one.meta["val"] for one in (node, node.all_input_nodes[1]))
    few = math.prod(kernel.shape[1:]) <= _FEW_ENTRIES
    return few and value.numel() * value.element_size() >= _LARGE


def _cheap(node: Node) -> bool:
    if node.op == "get_attr":
        return True
    if node.target is operator.getitem or not isinstance(node.target, OpOverload):
        return False  # one of several results of an operation: saved by itself
    name = node.target.overloadpacket.__name__
    return torch.Tag.pointwise in node.target.tags or name in NO_WORK


def extract(
    graph: GraphModule, inputs: list[Node], results: list[object], pooled: dict[Node, Node]
) -> GraphModule:
    """The part of the graph between these nodes as a graph of its own, in the old order."""
    part = Graph()
    copies: dict[Node, Node] = {}
    for number, node in enumerate(inputs):
        copies[node] = part.placeholder(f"input_{number}")
        copies[node].meta = dict(node.meta)
    wanted = needed(results, set(inputs), pooled)
    for node in graph.graph.nodes:
        if node in wanted and node not in copies:
            if node in pooled:
                images, channels_last = node.args[0].args
                copies[node] = part.call_function(
                    _GATHER, (copies[images], copies[pooled[node]], channels_last)
                )
                copies[node].meta = dict(node.meta)
            else:
                copies[node] = part.node_copy(node, copies.__getitem__)
    part.output([copies[item] if isinstance(item, Node) else None for item in results])
    return part_of(graph, part)
