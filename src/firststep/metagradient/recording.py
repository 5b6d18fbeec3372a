"""Record a pure function that takes derivatives inside as one flat graph of tensor operations.

``torch.compile`` does not see through ``torch.autograd.grad(create_graph=True)``. So a function is run once
while every tensor operation, those of the backward passes included, is recorded; the record is
a flat graph without autograd, which a compiler takes whole and :mod:`split` can cut in two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from firststep.metagradient.settle import settle

Function = Callable[..., Any]

# How much a result may read and still be computed anew at each of its readers instead of being written to
# memory. Most of the reads here are of a few numbers per channel, which stay in the processor's cache.
_COMPILER = {"realize_reads_threshold": 16, "realize_opcount_threshold": 100}


def flat(values: Any) -> list[Any]:
    """The leaves of nested dicts and tuples."""
    return list(tree_flatten(values)[0])


def record(function: Function, arguments: tuple[Any, ...]) -> tuple[GraphModule, TreeSpec]:
    """A graph from the arguments' leaves to the result's, and how the result is built of its leaves."""
    from torch.fx.experimental.proxy_tensor import make_fx  # slow to import, seldom needed

    leaves, nested = tree_flatten(arguments)
    structure: list[TreeSpec] = []

    def flattened(*inputs: Tensor) -> list[Any]:
        outputs, spec = tree_flatten(function(*tree_unflatten(inputs, nested)))
        structure.append(spec)
        return outputs

    # On shapes alone ("fake"): to compute it all without a compiler would take its time and its memory. The
    # network's buffers are not among the inputs.
    with quiet_compiler(), torch.no_grad():
        graph = make_fx(flattened, tracing_mode="fake", _allow_non_fake_inputs=True)(*leaves)
    _once(graph)
    return graph, structure[-1]


def _once(graph: GraphModule) -> None:
    """Compute once what was recorded twice: the Gram matrix of a subset passes the network a second time."""
    from torch._functorch.compile_utils import fx_graph_cse

    for node in graph.graph.nodes:
        if node.target is torch.ops.aten.detach.default:  # means nothing without autograd, and hides equals
            node.replace_all_uses_with(node.args[0])
    graph.graph = fx_graph_cse(graph.graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def compile_graph(graph: GraphModule, leaves: list[Any]) -> Function:
    """The graph compiled for inputs of these forms, now: where a failure can still be mended.

    By the compiler itself, for ``torch.compile`` would record the graph a second time. What it made is found
    again by later processes only if there is a record of symbolic shapes. It is to stay empty: left to
    itself, the compiler would take every size for a symbol and spend minutes on algebra.
    """
    from torch._guards import TracingContext, tracing
    from torch._inductor import compile
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    settle(graph)
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    forms: list[Any] = [mode.from_tensor(leaf, static_shapes=True) for leaf in leaves]
    with quiet_compiler(), torch.no_grad(), tracing(TracingContext(mode)):
        compiled: Function = compile(graph, forms, options=_COMPILER)
    return compiled


def shapes(arguments: tuple[Any, ...]) -> Any:
    """What a recorded graph is valid for, as a key."""
    leaves, structure = tree_flatten(arguments)
    return str(structure), tuple(
        (leaf.shape, leaf.stride(), leaf.dtype, leaf.device) if isinstance(leaf, Tensor) else leaf
        for leaf in leaves
    )


class quiet_compiler(warnings.catch_warnings):
    """Deprecations inside the compiler are not the user's to mend."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")
