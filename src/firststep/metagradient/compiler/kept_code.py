"""Compiled code on disk, by the fingerprint of the function: a later process starts without the compiler.

Inductor keeps its results by the traced graph, so that a warm start has to trace and to import the compiler.
What it made is a Python function ``call`` and C++ kernels. We keep the text of the first and the names of the
files of the second. If anything in the text is unknown, nothing is kept.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from firststep.errors import FirststepError
from firststep.metagradient.compiler.fingerprint import fingerprint
from firststep.metagradient.compiler.source_digest import SOURCE_DIGEST
from firststep.metagradient.compiler.torch_internals import (
    TreeSpec,
    cache_folder,
    compiler_settings,
    helpers_of_compiled_code,
    load_extension,
)
from firststep.utils.files import make_folder, write_json

Function = Callable[..., Any]

# What inductor's text may use. Its own operators of matrices are torch's, which is checked.
_NAMES = {"extern_kernels": torch, **helpers_of_compiled_code()}


@dataclass(frozen=True)
class Kept:
    """The place of a function's compiled code, and the code if it is there."""

    structure: TreeSpec
    """Structure of the function's result."""
    path: Path | None
    """None if this code cannot be kept."""
    functions: tuple[Function, ...] = ()
    """Empty if there is none."""
    saved_bytes: int = 0

    def keep(self, functions: Sequence[Function], inputs: Sequence[list[Any]], saved_bytes: int = 0) -> None:
        """Write the code of ``functions`` if it gives the same bits for these ``inputs`` as they do."""
        if self.path is None:
            return
        codes = [_code(getattr(one, "wrapper", None)) for one in functions]
        for function, code, values in zip(functions, codes, inputs, strict=True):
            if code is None or not _same(_load(code)(*values), function(*values), values):
                return
        _write(self.path, {"functions": codes, "saved_bytes": saved_bytes})


def find(function: Function, arguments: tuple[Any, ...], *settings: Any) -> Kept:
    """Look for the compiled code of a function.

    Args:
        function: what was compiled.
        arguments: as for tracing it.
        settings: all else that the compiled code depends on.
    """
    digest, structure = fingerprint(function, arguments)
    path = None if digest is None else _path(digest, *settings)
    if path is not None:
        with suppress(Exception):  # not there, or kernels are missing: it is compiled again
            stored = json.loads(path.read_text("utf-8"))
            functions = tuple(_load(code) for code in stored["functions"])
            return Kept(structure, path, functions, int(stored["saved_bytes"]))
    return Kept(structure, path)


def kept_kernel(key: Any, build: Callable[[], Function]) -> Function:
    """Return the C++ kernel that was kept for ``key``, else the one that ``build`` compiles."""
    path = _path(key)
    if path is not None:
        with suppress(Exception):
            return _load_kernel(json.loads(path.read_text("utf-8")))
    function = build()
    if path is not None and _kernel_file(function):
        _write(path, _kernel_file(function))
    return function


def _path(*key: Any) -> Path | None:
    """Return the file for a key; None if the compiler's caches are switched off."""
    settings = compiler_settings()
    if settings is None:
        return None
    digest = hashlib.sha256(repr((SOURCE_DIGEST, settings, key)).encode()).hexdigest()[:40]
    return cache_folder() / "firststep" / f"{digest}.json"


def _write(path: Path, value: Any) -> None:
    with suppress(FirststepError):  # a cache that cannot be written makes the next start slower
        make_folder(path.parent)
        write_json(path, value)


def _kernel_file(function: Any) -> list[str] | None:
    """Return file and name of a C++ kernel, the file relative to the cache."""
    path = Path(getattr(getattr(function, "__self__", None), "__file__", ""))
    if not path.is_relative_to(cache_folder()):
        return None
    return [path.relative_to(cache_folder()).as_posix(), function.__name__]


def _load_kernel(place: list[str]) -> Function:
    """Return the kernel at :func:`_kernel_file`'s place."""
    path, name = place
    function: Function = getattr(load_extension(cache_folder() / path), name)
    return function


def _code(wrapper: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what :func:`_load` needs of inductor's module; None if it has parts that we do not know."""
    if wrapper is None:
        return None
    text = Path(wrapper["__file__"]).read_text("utf-8")
    calls = [
        node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == "call"
    ]
    if len(calls) != 1:
        return None
    nodes = list(ast.walk(calls[0]))
    local = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    known = vars(builtins) | _NAMES
    kernels: dict[str, list[str]] = {}
    for name in {node.id for node in nodes if isinstance(node, ast.Name)} - local - {"args"}:
        value = wrapper.get(name, known.get(name))
        place = _kernel_file(value)
        if place is not None:
            kernels[name] = place
        elif name == "extern_kernels":
            used = {one.attr for one in nodes if isinstance(one, ast.Attribute) and _is_name(one.value, name)}
            if any(getattr(value, one) is not getattr(torch, one, None) for one in used):
                return None
        elif value is None or value is not known.get(name):
            return None
    return {"call": ast.unparse(calls[0]), "kernels": kernels}


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _load(code: dict[str, Any]) -> Function:
    scope = _NAMES | {name: _load_kernel(place) for name, place in code["kernels"].items()}
    exec(code["call"], scope)
    call = scope["call"]

    def run(*inputs: Any) -> Any:
        with torch.profiler.record_function("CompiledFxGraph"):
            return call(list(inputs))

    return run


def _memory(value: Any) -> int | None:
    return value.untyped_storage().data_ptr() if isinstance(value, Tensor) else None


def _same(found: Sequence[Any], expected: Sequence[Any], inputs: list[Any]) -> bool:
    """Return whether two results are equal bit for bit, in memory order and in the inputs that they share."""

    def form(value: Any) -> Any:
        shares = [number for number, one in enumerate(inputs) if _memory(one) == _memory(value) is not None]
        return (value.shape, value.stride(), value.dtype, shares) if isinstance(value, Tensor) else value

    return [form(one) for one in found] == [form(one) for one in expected] and all(
        torch.equal(one.nan_to_num(), other.nan_to_num())
        for one, other in zip(found, expected, strict=True)
        if isinstance(one, Tensor)
    )
