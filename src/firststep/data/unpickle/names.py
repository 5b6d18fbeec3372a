"""The names that a pickle of data may use, and what calling each of them does. Nothing is imported."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from firststep.data.unpickle.values import ArrayInFile, BytesInFile, as_text
from firststep.errors import FirststepError


class AllowedName(str):
    """A global that the pickle may use; only the functions in ``CALLS`` know what it means."""


class Unfinished:
    """An array whose shape and bytes the next BUILD brings."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Any = None


ALLOWED = {
    **{
        f"{core}.multiarray {what}": f"array {what}"
        for core in ("numpy.core", "numpy._core")
        for what in ("_reconstruct", "scalar")
    },
    **{f"{core}.numeric _frombuffer": "array _frombuffer" for core in ("numpy.core", "numpy._core")},
    **{
        f"{module} {what}": what
        for module in ("builtins", "__builtin__")
        for what in ("bytes", "bytearray", "list", "dict", "set", "frozenset", "int")
    },
    "numpy ndarray": "ndarray",
    "numpy dtype": "dtype",
    "_codecs encode": "encode",
    "collections OrderedDict": "dict",
    "collections defaultdict": "defaultdict",
}


NUMBERS_AND_TEXT = re.compile(r"[|<>=]?[?biufcSU]\d{0,9}")


def _dtype(code: Any) -> np.dtype[Any]:
    name = as_text(code)
    if not NUMBERS_AND_TEXT.fullmatch(name):
        raise FirststepError(f"arrays of type {name[:40]!r} are not data")
    return np.dtype(name)


def key(value: Any) -> Any:
    """A value that may be a key: tuples within tuples could take for ever to hash, or end the process."""
    parts = value if isinstance(value, tuple) else (value,)
    if not all(part is None or isinstance(part, str | bytes | int | float | np.generic) for part in parts):
        raise TypeError(f"a {type(value).__name__} as a key is not data")
    return value


def pairs(items: list[Any]) -> Iterator[tuple[Any, Any]]:
    return ((key(name), value) for name, value in zip(items[::2], items[1::2], strict=True))


def make_array(data: Any, dtype: np.dtype[Any], shape: tuple[int, ...], fortran: bool) -> Any:
    if not isinstance(dtype, np.dtype) or not isinstance(data, bytes | bytearray | BytesInFile):
        raise FirststepError("an array of objects is not data")
    if not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError("an array's shape is not whole numbers")
    needed = math.prod(shape) * dtype.itemsize
    # Latin-1 text in UTF-8 has one or two bytes for each.
    is_text = isinstance(data, BytesInFile) and data.is_text
    length = data.length if isinstance(data, BytesInFile) else len(data)
    if not (needed <= length <= 2 * needed if is_text else length == needed):
        raise ValueError(f"an array of shape {list(shape[:8])} does not fit its {length} bytes")
    if isinstance(data, BytesInFile):
        return ArrayInFile(data, dtype, shape, fortran)
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _encode(text: Any, encoding: str) -> Any:
    if encoding != "latin1":
        raise FirststepError(f"text in the encoding {as_text(encoding)[:40]!r} is not data")
    return text if isinstance(text, BytesInFile) else text.encode("latin-1")


def _flat(content: Any) -> list[Any]:
    """name, value, name, value ..."""
    items = content.items() if isinstance(content, dict) else content
    return [part for pair in items for part in _pair(*pair)]


def _pair(name: Any, value: Any) -> tuple[Any, Any]:
    return name, value


CALLS: dict[str, Callable[..., Any]] = {
    "array _reconstruct": lambda *ignored: Unfinished(),
    "array scalar": lambda dtype, data: np.frombuffer(data, dtype)[0],
    "array _frombuffer": lambda data, dtype, shape, order: make_array(data, dtype, shape, order == "F"),
    "dtype": lambda code, *ignored: _dtype(code),
    "encode": _encode,
    # through a list: bytes(10**12) would be a terabyte of zeros
    "bytes": lambda *content: bytes(list(content[0])) if content else b"",
    "bytearray": lambda *content: content[0] if content else b"",
    "list": lambda *content: list(*content),
    "dict": lambda *content: dict(pairs(_flat(content[0]))) if content else {},
    "defaultdict": lambda *ignored: {},
    "set": lambda *content: set(map(key, *content)) if content else set(),
    "frozenset": lambda *content: frozenset(map(key, *content)) if content else frozenset(),
    "int": lambda *content: int(*content),
}
