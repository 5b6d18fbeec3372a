"""Every private or experimental part of PyTorch that firststep uses; nothing else imports one.

The compiler needs what ``torch.compile`` is made of, because it does not see through
``torch.autograd.grad(create_graph=True)``. These parts change without notice, so this is the one file to look
at when PyTorch does. What is slow to import is imported when it is first used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

__all__ = [
    "TESTED_TORCH",
    "OpOverload",
    "TreeSpec",
    "compile_for",
    "eliminate_common_subexpressions",
    "force_stride_order",
    "trace",
    "tree_flatten",
    "tree_unflatten",
]

TESTED_TORCH = ("2.6.0", "2.13.0")
"""The lowest and the highest version that the tests were run with. With others compiling may fail: then the
computation runs without a compiler and a warning says so."""


def trace(function: Callable[..., Any], arguments: list[Any]) -> GraphModule:
    """The tensor operations of a function, those of its backward passes included, as a graph.

    It runs on shapes alone ("fake"): to compute it all without a compiler would take its time and its memory.
    The network's buffers are not among the arguments. No operation of the graph writes into another's result,
    as some of torch's own do (average pooling to one pixel, channels last): what reorders a graph or merges
    equal operations would give wrong numbers then.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    def traced(function: Callable[..., Any]) -> GraphModule:
        return make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(*arguments)

    with _quiet(), torch.no_grad():
        graph = traced(function)
        if any(
            isinstance(node.target, OpOverload) and node.target._schema.is_mutable
            for node in graph.graph.nodes
        ):
            graph = traced(torch.func.functionalize(graph))
        return graph


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    from torch._functorch.compile_utils import fx_graph_cse

    return fx_graph_cse(graph)


def force_stride_order() -> Callable[..., Any]:
    """The operator that makes the compiler write a tensor to memory, in a given order."""
    from torch._inductor import inductor_prims

    operator: Callable[..., Any] = inductor_prims.force_stride_order
    return operator


def compile_for(
    graph: GraphModule, arguments: list[Any], options: dict[str, Any], version: str
) -> Callable[..., Any]:
    """The graph compiled by inductor for arguments of these shapes.

    ``version``: of our operators, of which the caches on disk know no more than the names. What was compiled
    under another version is not used.

    By the compiler itself, for ``torch.compile`` would trace the graph a second time. Later processes find
    its results on disk only if there is a record of symbolic shapes. That record stays empty: otherwise the
    compiler would take every size for a symbol and spend minutes on algebra.
    """
    import torch._inductor
    from torch._guards import TracingContext, tracing
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    shapes: list[Any] = [mode.from_tensor(argument, static_shapes=True) for argument in arguments]
    with (
        _quiet(),
        torch.no_grad(),
        tracing(TracingContext(mode)),
        _metrics(),
        _without_gil(),
        _cached_under(version),
    ):
        compiled: Callable[..., Any] = torch._inductor.compile(graph, shapes, options=options)
    return compiled


def _cached_under(version: str) -> AbstractContextManager[Any]:
    """The version becomes a part of the key of every cache, beside the user's own tag."""
    import torch._functorch.config
    import torch.compiler.config

    settings: Any = torch.compiler.config
    if hasattr(settings, "cache_key_tag"):
        patched: AbstractContextManager[Any] = settings.patch(
            cache_key_tag=f"{settings.cache_key_tag} firststep {version}"
        )
        return patched
    # Torch 2.6: only the cache of graphs whose operators are still names is in danger, and can be left out.
    functorch: Any = torch._functorch.config
    without: AbstractContextManager[Any] = functorch.patch(enable_autograd_cache=False)
    return without


def _metrics() -> AbstractContextManager[Any]:
    """Torch 2.6 counts cache hits in a context that only its own front end opens, and fails without it."""
    from torch._dynamo import utils

    return nullcontext() if hasattr(utils, "CompileEventLogger") else utils.get_metrics_context()


@contextmanager
def _without_gil() -> Iterator[None]:
    """Kernels that are compiled, or loaded, inside let other Python threads run meanwhile.

    The compiler's own call of a kernel holds the interpreter's lock, as torch's operators do not: two threads
    with a task each would wait for one another.
    """
    from torch._inductor import codecache

    bindings: Any = getattr(codecache, "CppPythonBindingsCodeCache", None)
    call = getattr(bindings, "call_entry_function", None)
    text = getattr(bindings, "suffix_template", None)
    if call != _CALL or not isinstance(text, str):  # another version of torch, which may not need it
        yield
        return
    bindings.call_entry_function, bindings.suffix_template = _CALL_WITHOUT_LOCK, "#include <tuple>\n" + text
    try:
        yield
    finally:
        bindings.call_entry_function, bindings.suffix_template = call, text


_CALL = "kernel({}); Py_RETURN_NONE;"
# A kernel may throw (an index out of bounds): the lock is taken back on every way out, before it is reported.
_CALL_WITHOUT_LOCK = (
    "struct Release {{ PyThreadState* state = PyEval_SaveThread(); "
    "~Release() {{ PyEval_RestoreThread(state); }} }}; "
    "auto arguments = std::make_tuple({}); {{ Release release; std::apply(kernel, arguments); }} "
    "Py_RETURN_NONE;"
)


class _quiet(warnings.catch_warnings):
    """Deprecation warnings from inside the compiler do not help the user."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")
