"""Patches of inductor, PyTorch's compiler, that are active while we compile.

Only this module and `torch_internals.py` use private parts of PyTorch. docs/engine-notes.md says what each
patch brings. A patch whose target looks different in another version of torch does nothing.

- `overlap_cpp_compilation` compiles the C++ of one graph while Python lowers the next.
- `shared_files` puts several kernels into one C++ file.
- `fast_strides` computes strides without sympy.
- `release_gil` lets tasks on several threads run at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch

from firststep.metagradient.compiler.kernel_files import Kernel, by_file, is_known, name_in_file, one_file


@contextmanager
def overlap_cpp_compilation(device: torch.device) -> Iterator[list[Callable[[], None]]]:
    """Compile the C++ of a graph while Python lowers the next; all kernels are ready at the exit.

    Inductor lowers a graph in one thread, starts one C++ compiler per core and waits for them. Inside this
    context it does not wait; the yielded list has one waiting function per graph. CPU only.
    """
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.codecache import PyCodeCache

    wait, owner = AsyncCompile.wait, threading.get_ident()
    waiting: list[Callable[[], None]] = []

    def later(self: Any, scope: dict[str, Any]) -> None:
        if threading.get_ident() == owner and device.type == "cpu":
            waiting.append(partial(wait, self, scope))
        else:  # a graph of another thread
            wait(self, scope)

    with replaced(AsyncCompile, "wait", later):
        try:
            yield waiting
            for ready in waiting:
                ready()
        except BaseException:
            PyCodeCache.cache_clear()  # its modules may lack kernels
            raise


@contextmanager
def shared_files() -> Iterator[list[dict[str, Any]]]:
    """Compile, or load, the kernels of this thread in shared C++ files: see :mod:`kernel_files`.

    Yields a list of the names in each of inductor's Python modules that was executed.
    """
    from torch._inductor.async_compile import AsyncCompile, get_compile_threads
    from torch._inductor.codecache import CppPythonBindingsCodeCache, LambdaFuture

    bindings: Any = CppPythonBindingsCodeCache
    alone, wait, owner = AsyncCompile.cpp_pybinding, AsyncCompile.wait, threading.get_ident()
    wrappers: list[dict[str, Any]] = []
    if not is_known(bindings.suffix_template):  # another version of torch
        yield wrappers
        return

    def collect(self: Any, argtypes: list[str], source_code: str) -> Any:
        if threading.get_ident() != owner:  # a graph of another thread
            return alone(self, argtypes, source_code)
        return Kernel(tuple(argtypes), source_code)

    def compile_collected(self: Any, scope: dict[str, Any]) -> None:
        wrappers.append(scope)
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
        replaced(AsyncCompile, "cpp_pybinding", collect),
        replaced(AsyncCompile, "wait", compile_collected),
    ):
        yield wrappers


def _attribute(load: Callable[[], Any], name: str) -> Any:
    return getattr(load(), name)


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute inside the context and restore it at the exit."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def fast_strides() -> AbstractContextManager[Any]:
    """Read strides of linear indices off their coefficients. Inductor has sympy simplify the expressions."""
    from torch._inductor.codegen import cpp

    general: Any = getattr(cpp, "stride_at_vec_range", None)

    def stride(index: Any, var: Any, vec_length: int | None = None) -> Any:
        known = _linear_stride(index, var)
        return general(index, var, vec_length) if known is None else known

    return replaced(cpp, "stride_at_vec_range", stride) if general else nullcontext()


def _linear_stride(index: Any, var: Any) -> Any:
    """Return the coefficient of ``var`` in a sum of integer multiples of symbols; None for other indices."""
    if not var.is_Symbol or not hasattr(index, "as_coefficients_dict"):
        return None
    coefficients = index.as_coefficients_dict()
    linear = all((term.is_Symbol or term == 1) and n.is_Integer for term, n in coefficients.items())
    return coefficients.get(var, index * 0) if linear else None


@contextmanager
def release_gil() -> Iterator[None]:
    """Compile, or load, kernels that release the GIL, as torch's operators do.

    Inductor's kernels hold it: two threads with a task each would wait for one another.
    """
    from torch._inductor import codecache

    bindings: Any = getattr(codecache, "CppPythonBindingsCodeCache", None)
    call = getattr(bindings, "call_entry_function", None)
    text = getattr(bindings, "suffix_template", None)
    if call != CALL or not isinstance(text, str):  # another version of torch
        yield
        return
    with ExitStack() as changes:
        for name, value in call_without_gil(text).items():
            changes.enter_context(replaced(bindings, name, value))
        yield


def call_without_gil(text: str) -> dict[str, str]:
    """Return the attributes of inductor's bindings for kernels that release the GIL."""
    return {"call_entry_function": _CALL_WITHOUT_GIL, "suffix_template": "#include <tuple>\n" + text}


CALL = "kernel({}); Py_RETURN_NONE;"
# A kernel may throw (an index out of bounds), so a destructor reacquires the GIL.
_CALL_WITHOUT_GIL = (
    "struct Release {{ PyThreadState* state = PyEval_SaveThread(); "
    "~Release() {{ PyEval_RestoreThread(state); }} }}; "
    "auto arguments = std::make_tuple({}); {{ Release release; std::apply(kernel, arguments); }} "
    "Py_RETURN_NONE;"
)
