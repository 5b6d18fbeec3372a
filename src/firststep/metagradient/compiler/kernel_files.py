"""Several kernels in one C++ file, for of the second that a file takes most is not about its kernel.

The compiler writes each kernel to a file of its own, with a Python module around it. Reading the headers,
even precompiled, instantiating what the module needs and linking take two thirds of a typical file's time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Characters. Three graphs of Conv4 have half a million: few files, and still enough for a few cores. It does
# not depend on the number of cores, so that what one process has compiled another finds.
FILE_LENGTH = 100_000

_FUNCTION = "static PyObject* {entry_func}_py("
_TABLE = "static PyMethodDef py_methods[]"
_ROW = '{{"{entry_func}", {entry_func}_py, METH_VARARGS, ""}},'


class Kernel(NamedTuple):
    argument_types: tuple[str, ...]
    source: str
    """A function ``kernel`` with C linkage."""


def name_in_file(number: int) -> str:
    return f"kernel_{number}"


def by_file(kernels: Sequence[Kernel]) -> list[list[int]]:
    """Which kernels, by their numbers, share a file: files of about equal length, at least two of them."""
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
    """Whether the module around a kernel can be cut into the parts that :func:`one_file` repeats."""
    return all(template.count(part) == 1 for part in (_FUNCTION, _TABLE, _ROW))


def one_file(kernels: Iterable[Kernel], template: str, call: str) -> str:
    """A module ``kernel`` with the functions ``kernel_0``, ``kernel_1``, ...

    ``template``: the text of a module with one function, after its kernel; ``call``: of the call in it.
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
        # The namespace keeps apart what else kernels define; C linkage knows none, so the macro renames.
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
