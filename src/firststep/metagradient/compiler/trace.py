"""Trace a function that takes derivatives as one flat graph of tensor operations, and compile such graphs.

``torch.compile`` does not see through ``torch.autograd.grad(create_graph=True)``. So the function runs once
while every tensor operation is recorded, backward passes included. The result has no autograd in it: the
passes of :mod:`passes` can rewrite it and :mod:`partition` can split it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule

from firststep.metagradient.compiler.passes import CLEAN_UP, PREPARE, apply
from firststep.metagradient.compiler.source_digest import SOURCE_DIGEST
from firststep.metagradient.compiler.torch_internals import (
    TreeSpec,
    compile_for,
    empty_results,
    trace,
    tree_flatten,
    tree_unflatten,
)

Function = Callable[..., Any]

# The thresholds bound how much a result may read and still be recomputed by each reader instead of stored.
# Most reads here are a few numbers per channel, which stay in the cache, so the bounds are high.
# layout_optimization takes the second of any four dimensions for channels. In pooling they are the last, and
# it would copy the pixels with the height innermost.
_OPTIONS = {"realize_reads_threshold": 16, "realize_opcount_threshold": 100, "layout_optimization": False}


def flatten(values: Any) -> list[Any]:
    """Return the leaves of nested dicts and tuples."""
    return list(tree_flatten(values)[0])


def trace_graph(function: Function, arguments: tuple[Any, ...]) -> tuple[GraphModule, TreeSpec]:
    """Return the graph from the arguments' leaves to the result's leaves, and the result's structure."""
    leaves, nested = tree_flatten(arguments)
    structure: list[TreeSpec] = []

    def flattened(*inputs: Tensor) -> list[Any]:
        outputs, spec = tree_flatten(function(*tree_unflatten(list(inputs), nested)))
        structure.append(spec)
        return outputs

    graph = trace(flattened, leaves)
    apply(CLEAN_UP, graph)
    return graph, structure[-1]


def compile_graph(graph: GraphModule, leaves: list[Any]) -> Function:
    """Compile ``graph`` now for inputs like ``leaves``, while the caller can still handle a failure."""
    apply(PREPARE, graph)
    # The thread count is compiled in; callers cannot change it.
    options = {**_OPTIONS, "cpp.threads": torch.get_num_threads()}
    return compile_for(graph, leaves, options, SOURCE_DIGEST)


def expected_results(graph: GraphModule, leaves: list[Any]) -> list[Any]:
    """Return empty tensors like the results that the compiled graph will have."""
    prepared = copy.deepcopy(graph)
    apply(PREPARE, prepared)
    return empty_results(prepared, leaves)


def shape_key(arguments: tuple[Any, ...]) -> Any:
    """Return a key of all that a traced graph depends on."""
    leaves, structure = tree_flatten(arguments)
    return torch.get_num_threads(), str(structure), tensor_forms(leaves)


def tensor_forms(leaves: list[Any]) -> Any:
    """Return the shape, strides, dtype and device per tensor: all that compiled code depends on."""
    return tuple(
        (leaf.shape, leaf.stride(), leaf.dtype, leaf.device) if isinstance(leaf, Tensor) else leaf
        for leaf in leaves
    )


def storage_bytes(tensors: list[Tensor]) -> int:
    """Return the memory of these tensors. Views of one storage count once."""
    return sum({value.data_ptr(): value.untyped_storage().nbytes() for value in tensors}.values())
