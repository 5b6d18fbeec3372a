"""Split the graph of a step and its pull-back, so that the backward part starts from saved results.

The forward part is everything that the step's results depend on. The backward part needs some of its values
again. It either reads them as saved tensors or recomputes them:

- Products, convolutions and reductions are saved.
- Pointwise operations are recomputed: fused into their reader they cost less than memory traffic.
- Pooling saves its argmax, one byte per result. The results are entries of its images, which are recomputed.
- A large first layer with few input channels is recomputed. Its 27 multiplications per entry take little
  longer than reading the entry, and it would be most of a step's memory.

About two tensors per remaining convolution are saved. They can be rounded to a smaller dtype while saved.
"""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from firststep.metagradient.compiler.pooling import GATHER, POOL
from firststep.metagradient.compiler.torch_internals import OpOverload, part_of

# Views, constants and the transpose of pooling.
CHEAP = {
    "view", "_unsafe_view", "reshape", "expand", "permute", "t", "transpose", "unsqueeze", "squeeze", "slice",
    "select", "detach", "alias", "clone", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like",
    "new_zeros", "new_ones", "scalar_tensor", "arange", "empty_like", "_to_copy", "lift_fresh_copy", "fill",
    "max_pool2d_with_indices_backward", "unpool_2x2",
}  # fmt: skip

_FEW_ENTRIES = 32  # kernel entries per output channel
_LARGE = 2**24  # bytes: more than the caches of a core


class Partition(NamedTuple):
    forward: GraphModule
    """(forward inputs) → (forward results, saved tensors)."""
    backward: GraphModule
    """(all inputs, saved tensors) → the other results."""


def partition(
    graph: GraphModule, forward_inputs: int, forward_outputs: int, saved_dtype: torch.dtype | None = None
) -> Partition:
    """Split ``graph``.

    Args:
        graph: the graph of both parts.
        forward_inputs: number of leading inputs that the forward part takes.
        forward_outputs: number of leading results that the forward part computes.
        saved_dtype: dtype to round saved images and sequences to. Features, logits and Gram matrices are not
            rounded.
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
        if node in types:  # only while saved: the compiler does not vectorise unpooling of bytes
            _save_as(parts, *where, torch.uint8, types[node])
        elif saved_dtype is not None and _has_pixels(node):
            _save_as(parts, *where, saved_dtype, node.meta["val"].dtype)
    for part in parts:
        part.recompile()
    return parts


def _has_pixels(node: Node) -> bool:
    """Return whether a node is images or sequences, nearly all of the saved memory.

    Matrices are not rounded: the smallest eigenvalues of a rounded Gram matrix would be noise.
    """
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.is_floating_point() and value.dim() > 2


def _save_as(
    parts: Partition, result: int, argument: int, saved_dtype: torch.dtype, dtype: torch.dtype
) -> None:
    """Convert a saved result of the forward part to ``saved_dtype``, and back in the backward part."""
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
    """Return the argmax per pooling result of the forward part."""
    found: dict[Node, Node] = {}
    for pool in list(graph.nodes):
        if pool.target is POOL and pool in in_forward:
            by_output = {user.args[1]: user for user in pool.users}
            if 0 in by_output and 1 in by_output:
                found[by_output[0]] = by_output[1]
    return found


def _sources(node: Node, pooled: dict[Node, Node]) -> list[Node]:
    """Return the inputs of a node. Those of a pooling result are its images and the argmax."""
    return [*node.args[0].all_input_nodes, pooled[node]] if node in pooled else node.all_input_nodes  # type: ignore[union-attr]


def needed(results: list[object], stop: set[Node], pooled: dict[Node, Node]) -> set[Node]:
    """Return the nodes that ``results`` depend on, up to those of ``stop``."""
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
        # All results of a forward operation are available, even if the forward part does not use this one.
        source = node.all_input_nodes[0] if node.target is operator.getitem else node
        if (
            source in in_forward
            and node not in pooled
            and not _cheap(node)
            and not _is_large_first_layer(node, inputs)
        ):
            saved[node] = None
        else:
            stack.extend(_sources(node, pooled))
    return list(saved)


def _is_large_first_layer(node: Node, inputs: set[Node]) -> bool:
    """Return whether a node is a convolution of input images with few channels and a large result."""
    if node.target is not torch.ops.aten.convolution.default or not inputs.issuperset(node.all_input_nodes):
        return False
    value, kernel = (one.meta["val"] for one in (node, node.all_input_nodes[1]))
    few = math.prod(kernel.shape[1:]) <= _FEW_ENTRIES
    return few and value.numel() * value.element_size() >= _LARGE


def _cheap(node: Node) -> bool:
    if node.op == "get_attr":
        return True
    if node.target is operator.getitem or not isinstance(node.target, OpOverload):
        return False  # one of several results: saved by itself
    name = node.target.overloadpacket.__name__
    return torch.Tag.pointwise in node.target.tags or name in CHEAP


def extract(
    graph: GraphModule, inputs: list[Node], results: list[object], pooled: dict[Node, Node]
) -> GraphModule:
    """Return the part of the graph from ``inputs`` to ``results`` as a new graph, in the old order."""
    part = Graph()
    copies: dict[Node, Node] = {}
    for number, node in enumerate(inputs):
        copies[node] = part.placeholder(f"input_{number}")
        copies[node].meta = dict(node.meta)
    inside = needed(results, set(inputs), pooled)
    for node in graph.graph.nodes:
        if node in inside and node not in copies:
            if node in pooled:
                images, channels_last = node.args[0].args
                copies[node] = part.call_function(
                    GATHER, (copies[images], copies[pooled[node]], channels_last)
                )
                copies[node].meta = dict(node.meta)
            else:
                copies[node] = part.node_copy(node, copies.__getitem__)
    part.output([copies[item] if isinstance(item, Node) else None for item in results])
    return part_of(graph, part)
