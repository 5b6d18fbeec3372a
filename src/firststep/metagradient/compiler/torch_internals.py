"""Every private or experimental part of PyTorch that firststep uses; nothing else imports one.

The compiler needs what ``torch.compile`` is made of, because it does not see through
``torch.autograd.grad(create_graph=True)``. These parts change without notice, so this is the one file to look
at when PyTorch does. What is slow to import is imported when it is first used.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache, partial
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule
from torch.fx._lazy_graph_module import _LazyGraphModule, _use_lazy_graph_module
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from firststep.metagradient.compiler.kernel_files import Kernel, by_file, is_known, name_in_file, one_file

__all__ = [
    "TESTED_TORCH",
    "OpOverload",
    "TreeSpec",
    "compile_for",
    "eliminate_common_subexpressions",
    "empty_results",
    "force_stride_order",
    "kernels_beside",
    "load_cpp",
    "part_of",
    "start_cpp_compiler",
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

    with _quiet(), torch.no_grad(), _use_lazy_graph_module(True):
        graph = traced(function)
        if any(
            isinstance(node.target, OpOverload) and node.target._schema.is_mutable
            for node in graph.graph.nodes
        ):
            graph = traced(torch.func.functionalize(graph))
        return graph


def part_of(graph: GraphModule, part: Graph) -> GraphModule:
    """With the constants of the whole. Its Python code is written when it is called: most never are."""
    return _LazyGraphModule(graph, part)


def empty_results(graph: GraphModule, arguments: list[Any]) -> list[Any]:
    """Tensors like those that the graph computes from these arguments, without computing them."""
    from torch._subclasses import FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    shapes = [mode.from_tensor(argument, static_shapes=True) for argument in arguments]
    with _quiet(), torch.no_grad(), mode:
        results = torch.fx.Interpreter(graph).run(*shapes)
    return [
        torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device=one.device)
        if isinstance(one, torch.Tensor)
        else one
        for one in results
    ]


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

    ``version``: of our operators, of which the caches on disk know the names alone.

    By the compiler itself, for ``torch.compile`` would trace the graph a second time. Later processes find
    its results on disk only if there is a record of symbolic shapes. That record stays empty: otherwise the
    compiler would take every size for a symbol and spend minutes on algebra.
    """
    import torch._inductor.config
    from torch._guards import TracingContext, tracing
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    if hasattr(
        torch._inductor.config, "graph_partition"
    ):  # for CUDA graphs, which are off: it only takes time
        options = {**options, "graph_partition": False}
    shapes: list[Any] = [mode.from_tensor(argument, static_shapes=True) for argument in arguments]
    with (
        _quiet(),
        torch.no_grad(),
        tracing(TracingContext(mode)),
        _metrics(),
        _without_gil(),
        _few_files(),
        _fast_strides(),
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
        tag = f"{settings.cache_key_tag} firststep {version}"
        return _replaced(settings, "cache_key_tag", tag)
    # Torch 2.6: only the cache of graphs whose operators are still names is in danger, and can be left out.
    return _replaced(torch._functorch.config, "enable_autograd_cache", False)


def _metrics() -> AbstractContextManager[Any]:
    """Torch 2.6 counts cache hits in a context that only its own front end opens, and fails without it."""
    from torch._dynamo import utils

    return nullcontext() if hasattr(utils, "CompileEventLogger") else utils.get_metrics_context()


@cache
def start_cpp_compiler(load: Callable[[], object]) -> None:
    """Let a thread do what comes before the first kernel of a process, while Python traces.

    Inductor tries out the vector instructions, in a process that imports torch, and compiles its header. Then
    ``load`` is called, which is to compile a first kernel.
    """
    from torch._inductor import codecache, cpu_vec_isa  # noqa: F401  (no imports in two threads at once)
    from torch.utils import _filelock  # noqa: F401

    def begin() -> None:
        with suppress(Exception):  # whoever needs it will say the same
            cpu_vec_isa.pick_vec_isa()
            load()

    threading.Thread(target=begin, daemon=True).start()


def load_cpp(argument_types: list[str], source: str) -> Callable[..., None]:
    """A C++ function ``kernel`` of tensors and numbers, as a function of Python that lets other threads run.

    With torch's vectors and the processor's instructions, as the compiler's own kernels have them.
    """
    from torch._inductor.codecache import CppPythonBindingsCodeCache

    bindings: Any = CppPythonBindingsCodeCache
    if bindings.call_entry_function == _CALL:
        # A class of its own: another thread may compile a graph at this moment.
        bindings = type("Bindings", (bindings,), _without_lock(bindings.suffix_template))
    with _quiet():
        function: Callable[..., None] = bindings.load_pybinding(
            argument_types, f"#include <torch/csrc/inductor/cpp_prefix.h>\n{source}"
        )
    return function


@contextmanager
def kernels_beside(device: torch.device) -> Iterator[list[Callable[[], None]]]:
    """Inside, the C++ of a graph is compiled while Python goes on to the next graph; all is ready at the end.

    Inductor lowers a graph in one thread, hands its kernels to as many C++ compilers as there are cores, and
    waits for them. Here the list has what waits for each graph. On a GPU, where it was not tried, none does.
    """
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.codecache import PyCodeCache

    wait, owner = AsyncCompile.wait, threading.get_ident()
    waiting: list[Callable[[], None]] = []

    def later(self: Any, scope: dict[str, Any]) -> None:
        if threading.get_ident() == owner and device.type == "cpu":
            waiting.append(partial(wait, self, scope))
        else:  # somebody else's graph
            wait(self, scope)

    with _replaced(AsyncCompile, "wait", later):
        try:
            yield waiting
            for ready in waiting:
                ready()
        except BaseException:
            PyCodeCache.cache_clear()  # of modules that may lack their kernels
            raise


@contextmanager
def _few_files() -> Iterator[None]:
    """Kernels that are compiled, or loaded, by this thread inside share C++ files."""
    from torch._inductor.async_compile import AsyncCompile, get_compile_threads
    from torch._inductor.codecache import CppPythonBindingsCodeCache, LambdaFuture

    bindings: Any = CppPythonBindingsCodeCache
    alone, wait, owner = AsyncCompile.cpp_pybinding, AsyncCompile.wait, threading.get_ident()
    if not is_known(bindings.suffix_template):  # another version of torch
        yield
        return

    def collect(self: Any, argtypes: list[str], source_code: str) -> Any:
        if threading.get_ident() != owner:  # somebody else's graph
            return alone(self, argtypes, source_code)
        return Kernel(tuple(argtypes), source_code)

    def compile_collected(self: Any, scope: dict[str, Any]) -> None:
        names = [name for name, value in scope.items() if isinstance(value, Kernel)]
        kernels = [scope[name] for name in names]
        at_once = get_compile_threads() > 1
        for file in by_file(kernels):
            code = one_file(
                [kernels[number] for number in file], bindings.suffix_template, bindings.call_entry_function
            )
            load = bindings.load_async(code, submit_fn=self.submit if at_once else None)
            for place, number in enumerate(file):
                ready = partial(_attribute, load, name_in_file(place))
                scope[names[number]] = LambdaFuture(ready) if at_once else ready()
        wait(self, scope)

    with (
        _replaced(AsyncCompile, "cpp_pybinding", collect),
        _replaced(AsyncCompile, "wait", compile_collected),
    ):
        yield


def _attribute(load: Callable[[], Any], name: str) -> Any:
    return getattr(load(), name)


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _fast_strides() -> AbstractContextManager[Any]:
    """Strides of linear indices are coefficients; the compiler has sympy simplify whole expressions."""
    from torch._inductor.codegen import cpp

    general: Any = getattr(cpp, "stride_at_vec_range", None)

    def stride(index: Any, var: Any, vec_length: int | None = None) -> Any:
        known = _linear_stride(index, var)
        return general(index, var, vec_length) if known is None else known

    return _replaced(cpp, "stride_at_vec_range", stride) if general else nullcontext()


def _linear_stride(index: Any, var: Any) -> Any:
    """The coefficient of ``var`` in a sum of whole multiples of symbols; None of anything else."""
    if not var.is_Symbol or not hasattr(index, "as_coefficients_dict"):
        return None
    coefficients = index.as_coefficients_dict()
    linear = all((term.is_Symbol or term == 1) and n.is_Integer for term, n in coefficients.items())
    return coefficients.get(var, index * 0) if linear else None


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
    with ExitStack() as changes:
        for name, value in _without_lock(text).items():
            changes.enter_context(_replaced(bindings, name, value))
        yield


def _without_lock(text: str) -> dict[str, str]:
    return {"call_entry_function": _CALL_WITHOUT_LOCK, "suffix_template": "#include <tuple>\n" + text}


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
