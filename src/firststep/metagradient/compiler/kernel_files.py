"""Put several kernels into one C++ file: headers and linking dominate compile time.

Inductor writes one file per kernel, each a Python module. Reading the (precompiled) headers, instantiating
the module's templates and linking take two thirds of the second that a typical file needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Characters. The three graphs of Conv4 have half a million: few files, but enough to use several cores. The
# length does not depend on the core count, so that processes find each other's files in the cache.
FILE_LENGTH = 100_000

_FUNCTION = "static PyObject* {entry_func}_py("
_TABLE = "static PyMethodDef py_methods[]"
_ROW = '{{"{entry_func}", {entry_func}_py, METH_VARARGS, ""}},'


class Kernel(NamedTuple):
    argument_types: tuple[str, ...]
    source: str
    """Source of a function ``kernel`` with C linkage."""


def name_in_file(number: int) -> str:
    """Return the name of a kernel in its file."""
    return f"kernel_{number}"


def by_file(kernels: Sequence[Kernel]) -> list[list[int]]:
    """Return the kernel numbers per file. Files have about equal length, and there are at least two."""
    length = sum(len(kernel.source) for kernel in kernels)
    count = min(len(kernels), max(2, -(-length // FILE_LENGTH)))
    files: list[list[int]] = [[] for _ in range(count)]
    lengths = [0] * count
    for number in sorted(range(len(kernels)), key=lambda number: -len(kernels[number].source)):
        shortest = lengths.index(min(lengths))
        files[shortest].append(number)
        lengths[shortest] += len(kernels[number].source)
    return files


def is_known(template: str) -> bool:
    """Return whether ``template`` has the parts that :func:`one_file` repeats."""
    return all(template.count(part) == 1 for part in (_FUNCTION, _TABLE, _ROW))


def one_file(kernels: Iterable[Kernel], template: str, call: str) -> str:
    """Return the source of a module with the functions ``kernel_0``, ``kernel_1``, ...

    Args:
        kernels: what the file contains.
        template: inductor's text of a module with one function, which follows its kernel.
        call: inductor's text of the call in that function.
    """
    kernels = list(kernels)
    head, rest = template.split(_FUNCTION)
    body, tail = rest.split(_TABLE)
    function = _FUNCTION + body
    lines = [line for kernel in kernels for line in kernel.source.splitlines()]
    parts = [
        *dict.fromkeys(line for line in lines if line.startswith("#include")),
        head.format(entry_func="kernel", extra_parse_arg=""),
    ]
    for number, kernel in enumerate(kernels):
        types = enumerate(kernel.argument_types)
        values = ", ".join(f"parse_arg<{kind.replace('const ', '')}>(args, {n})" for n, kind in types)
        code = "\n".join(line for line in kernel.source.splitlines() if not line.startswith("#include"))
        bound = function.format(
            entry_func="kernel",
            arg_len=len(kernel.argument_types),
            call_entry_func=call.format(values),
        )
        # The namespace separates helpers of the kernels. C linkage ignores it, so a macro renames `kernel`.
        name = name_in_file(number)
        parts += [f"namespace in_{name} {{", f"#define kernel {name}", code, bound, "#undef kernel", "}"]
    row = _ROW.format(entry_func="kernel")
    named = range(len(kernels))
    rows = [
        row.replace('"kernel"', f'"{name}"').replace("kernel_py", f"in_{name}::kernel_py")
        for name in map(name_in_file, named)
    ]
    parts.append((_TABLE + tail).format(entry_func="kernel").replace(row, "\n    ".join(rows)))
    return "\n".join(parts)
