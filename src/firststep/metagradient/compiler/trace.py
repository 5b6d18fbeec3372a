"""Trace a pure function that takes derivatives inside as one flat graph of tensor operations, and compile it.

``torch.compile`` does not see through ``torch.autograd.grad(create_graph=True)``. So a function is run once
while every tensor operation, those of the backward passes included, is recorded; the result is a flat graph
without autograd, which a compiler takes whole and :mod:`partition` can cut in two.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule

from firststep.metagradient.compiler.few_channels import use_few_channels
from firststep.metagradient.compiler.few_pixels import use_products_of_patches
from firststep.metagradient.compiler.materialize import materialize
from firststep.metagradient.compiler.source_digest import SOURCE_DIGEST
from firststep.metagradient.compiler.sums import sum_in_two_stages
from firststep.metagradient.compiler.torch_internals import (
    TreeSpec,
    compile_for,
    eliminate_common_subexpressions,
    empty_results,
    trace,
    tree_flatten,
    tree_unflatten,
)
from firststep.metagradient.compiler.winograd import use_winograd

Function = Callable[..., Any]

# How much a result may read and still be computed anew at each of its readers instead of being written to
# memory. Most of the reads here are of a few numbers per channel, which stay in the processor's cache.
# Left to itself, the compiler also takes anything with four dimensions for images whose channels are the
# second: of pooling's pixels, where they are the last, it makes copies with the height innermost.
_OPTIONS = {"realize_reads_threshold": 16, "realize_opcount_threshold": 100, "layout_optimization": False}


def flatten(values: Any) -> list[Any]:
    """The leaves of nested dicts and tuples."""
    return list(tree_flatten(values)[0])


def trace_graph(function: Function, arguments: tuple[Any, ...]) -> tuple[GraphModule, TreeSpec]:
    """A graph from the arguments' leaves to the result's, and how the result is built of its leaves."""
    leaves, nested = tree_flatten(arguments)
    structure: list[TreeSpec] = []

    def flattened(*inputs: Tensor) -> list[Any]:
        outputs, spec = tree_flatten(function(*tree_unflatten(list(inputs), nested)))
        structure.append(spec)
        return outputs

    graph = trace(flattened, leaves)
    # The Gram matrix of a subset passes the network a second time: what was traced twice is computed once.
    for node in graph.graph.nodes:
        if node.target is torch.ops.aten.detach.default:  # means nothing without autograd, and hides equals
            node.replace_all_uses_with(node.args[0])
    graph.graph = eliminate_common_subexpressions(graph.graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph, structure[-1]


def compile_graph(graph: GraphModule, leaves: list[Any]) -> Function:
    """The graph compiled for inputs like these, now: where a failure can still be handled."""
    _arrange_memory(graph)
    # The compiled code asks for so many threads, whoever calls it.
    options = {**_OPTIONS, "cpp.threads": torch.get_num_threads()}
    return compile_for(graph, leaves, options, SOURCE_DIGEST)


def results_like(graph: GraphModule, leaves: list[Any]) -> list[Any]:
    """Empty tensors like the results of the graph once it is compiled, known before that."""
    arranged = copy.deepcopy(graph)
    _arrange_memory(arranged)
    return empty_results(arranged, leaves)


def _arrange_memory(graph: GraphModule) -> None:
    """Which results are written to memory, and in which order; then which routines convolve them."""
    sum_in_two_stages(graph.graph)
    materialize(graph)
    convolve_by_own_routines(graph)


def convolve_by_own_routines(graph: GraphModule) -> None:
    """Change ``graph`` in place, where there is a routine that is faster than the library's."""
    use_few_channels(graph.graph)
    use_products_of_patches(graph.graph)
    use_winograd(graph.graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def shape_key(arguments: tuple[Any, ...]) -> Any:
    """What a traced graph is valid for, as a key."""
    leaves, structure = tree_flatten(arguments)
    return torch.get_num_threads(), str(structure), forms(leaves)


def forms(leaves: list[Any]) -> Any:
    """All that compiled code depends on."""
    return tuple(
        (leaf.shape, leaf.stride(), leaf.dtype, leaf.device) if isinstance(leaf, Tensor) else leaf
        for leaf in leaves
    )


def storage_bytes(tensors: list[Tensor]) -> int:
    """The memory of these tensors; views of one storage count once."""
    return sum({value.data_ptr(): value.untyped_storage().nbytes() for value in tensors}.values())
