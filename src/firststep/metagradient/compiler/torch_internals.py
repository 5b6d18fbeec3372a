"""Every private or experimental part of PyTorch that firststep uses.

Only this module and `inductor_patches.py` import such parts.

``torch.compile`` does not see through ``torch.autograd.grad(create_graph=True)``, so we use its parts. They
change without notice: look here first when a new PyTorch breaks something. Slow imports are delayed until
their first use.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule
from torch.fx._lazy_graph_module import _LazyGraphModule, _use_lazy_graph_module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from firststep.metagradient.compiler.inductor_patches import (
    CALL,
    call_without_gil,
    fast_strides,
    release_gil,
    replaced,
    shared_files,
)

__all__ = [
    "TESTED_TORCH",
    "OpOverload",
    "TorchDispatchMode",
    "TreeSpec",
    "cache_folder",
    "compile_for",
    "compiler_settings",
    "eliminate_common_subexpressions",
    "empty_results",
    "force_stride_order",
    "helpers_of_compiled_code",
    "load_cpp",
    "load_extension",
    "on_fake_tensors",
    "part_of",
    "start_cpp_compiler",
    "trace",
    "tree_flatten",
    "tree_unflatten",
]

TESTED_TORCH = ("2.6.0", "2.13.0")
"""Lowest and highest version that the tests ran with. If compiling fails with another version, firststep
warns and runs uncompiled."""


def trace(function: Callable[..., Any], arguments: list[Any]) -> GraphModule:
    """Return the tensor operations of a function as a graph, backward passes included.

    The function runs on fake tensors, which have shapes but no values, so it takes little time and memory.
    The network's buffers are not among the arguments.

    No operation of the graph mutates a tensor: passes that reorder or merge operations would give wrong
    numbers. Some of torch's own operations do (average pooling of channels-last images to one pixel); they
    are replaced.
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
    """Return ``part`` as a module with the constants of ``graph``.

    Its Python code is generated at the first call: most parts are only compiled and never called.
    """
    return _LazyGraphModule(graph, part)


def empty_results(graph: GraphModule, arguments: list[Any]) -> list[Any]:
    """Return empty tensors with the shapes, strides and dtypes of the graph's results."""
    results = on_fake_tensors(torch.fx.Interpreter(graph).run, arguments)
    return [
        torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device=one.device)
        if isinstance(one, torch.Tensor)
        else one
        for one in results
    ]


def on_fake_tensors(function: Callable[..., Any], arguments: list[Any]) -> Any:
    """Call ``function`` with tensors that have the forms of ``arguments`` and no values."""
    from torch._subclasses import FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    shapes = [mode.from_tensor(argument, static_shapes=True) for argument in arguments]
    with _quiet(), torch.no_grad(), mode:
        return function(*shapes)


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Return a copy of ``graph`` in which equal operations are computed once."""
    from torch._functorch.compile_utils import fx_graph_cse

    return fx_graph_cse(graph)


def force_stride_order() -> Callable[..., Any]:
    """Return the operator that makes the compiler store a tensor with given strides."""
    from torch._inductor import inductor_prims

    operator: Callable[..., Any] = inductor_prims.force_stride_order
    return operator


def compile_for(
    graph: GraphModule, arguments: list[Any], options: dict[str, Any], version: str
) -> Callable[..., Any]:
    """Compile the graph with inductor for arguments of these shapes.

    Inductor is called directly, because ``torch.compile`` would trace the graph again. Its cache on disk
    needs a ShapeEnv. It stays empty: with symbolic sizes the compiler would spend minutes on algebra.

    Args:
        graph: what to compile.
        arguments: tensors of the shapes to compile for.
        options: inductor's settings.
        version: version of our operators, part of the cache key. The cache knows them by name only.

    Returns:
        The compiled function. Its attribute ``wrapper`` holds the names in inductor's Python module, if there
        is exactly one.
    """
    import torch._inductor.config
    from torch._guards import TracingContext, tracing
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    if hasattr(torch._inductor.config, "graph_partition"):
        options = {**options, "graph_partition": False}  # for CUDA graphs, which are off: costs only time
    shapes: list[Any] = [mode.from_tensor(argument, static_shapes=True) for argument in arguments]
    with (
        _quiet(),
        torch.no_grad(),
        tracing(TracingContext(mode)),
        _metrics(),
        release_gil(),
        shared_files() as wrappers,
        fast_strides(),
        _cached_under(version),
    ):
        compiled: Callable[..., Any] = torch._inductor.compile(graph, shapes, options=options)
    if len(wrappers) == 1:
        compiled.wrapper = wrappers[0]  # type: ignore[attr-defined]
    return compiled


def _cached_under(version: str) -> AbstractContextManager[Any]:
    """Add the version to the key of every cache, after the user's own tag."""
    import torch._functorch.config
    import torch.compiler.config

    settings: Any = torch.compiler.config
    if hasattr(settings, "cache_key_tag"):
        tag = f"{settings.cache_key_tag} firststep {version}"
        return replaced(settings, "cache_key_tag", tag)
    # Torch 2.6 has no tag. Only the autograd cache stores graphs with operator names, so switch it off.
    return replaced(torch._functorch.config, "enable_autograd_cache", False)


def _metrics() -> AbstractContextManager[Any]:
    """Open the metrics context that torch 2.6 needs to count cache hits; later versions do without."""
    from torch._dynamo import utils

    return nullcontext() if hasattr(utils, "CompileEventLogger") else utils.get_metrics_context()


@cache
def start_cpp_compiler(load: Callable[[], object]) -> None:
    """Start a thread that prepares the C++ compiler while Python traces.

    Inductor tests the vector instructions, in a process that imports torch, and compiles its header. Then the
    thread calls ``load``, which compiles the first kernels.
    """
    from torch._inductor import codecache, cpu_vec_isa  # noqa: F401  (import before two threads might)
    from torch.utils import _filelock  # noqa: F401

    def begin() -> None:
        with suppress(Exception):  # the first user of the compiler will report the same error
            cpu_vec_isa.pick_vec_isa()
            load()

    threading.Thread(target=begin, daemon=True).start()


def load_cpp(argument_types: list[str], source: str) -> Callable[..., None]:
    """Compile a C++ function ``kernel`` of tensors and numbers, and return it as a Python function.

    The source can use torch's vector types, compiled for this processor. The function releases the GIL.
    """
    from torch._inductor.codecache import CppPythonBindingsCodeCache

    bindings: Any = CppPythonBindingsCodeCache
    if bindings.call_entry_function == CALL:
        # A subclass instead of a patch: another thread may be compiling a graph.
        bindings = type("Bindings", (bindings,), call_without_gil(bindings.suffix_template))
    with _quiet():
        function: Callable[..., None] = bindings.load_pybinding(
            argument_types, f"#include <torch/csrc/inductor/cpp_prefix.h>\n{source}"
        )
    return function


def compiler_settings() -> tuple[Any, ...] | None:
    """Return what compiled code depends on beside the graph; None if its caches are switched off."""
    import torch._functorch.config
    import torch._inductor.config
    import torch.compiler.config

    inductor: Any = torch._inductor.config
    functorch: Any = torch._functorch.config
    # Passes of the user's own are not in the hash.
    passes = [name for name in dir(inductor) if name.endswith(("_custom_pass", "_pre_pass", "_post_pass"))]
    off = inductor.force_disable_caches or not inductor.fx_graph_cache or not functorch.enable_autograd_cache
    if off or any(callable(getattr(inductor, name)) for name in passes):
        return None
    return (
        sys.version,
        torch.__version__,
        torch.version.git_version,
        torch.backends.cpu.get_cpu_capability(),
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        getattr(torch.compiler.config, "cache_key_tag", ""),
        inductor.get_hash(),
        functorch.get_hash(),
    )


def cache_folder() -> Path:
    """Return the folder of inductor's cache."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return Path(cache_dir())


def helpers_of_compiled_code() -> dict[str, Any]:
    """Return the helpers in C that inductor's Python text uses, by their names there."""
    guards: Any = torch._C._dynamo.guards
    places = {
        "assert_size_stride": "assert_size_stride",
        "assert_alignment": "assert_alignment",
        "empty_strided_cpu": "_empty_strided_cpu",
        "reinterpret_tensor": "_reinterpret_tensor",
    }
    found = {name: getattr(guards, place) for name, place in places.items() if hasattr(guards, place)}
    return {"torch": torch, "aten": torch.ops.aten, "device": torch.device, **found}


def load_extension(path: Path) -> ModuleType:
    """Load a file of kernels that inductor has compiled, as inductor does."""
    os.environ["_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"] = str(
        torch._C._dynamo.guards._torchinductor_pyobject_tensor_data_ptr  # type: ignore[attr-defined]
    )
    name = f"{path.stem}.kernel"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]


class _quiet(warnings.catch_warnings):
    """Hide deprecation warnings from inside the compiler, which do not help the user."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")
