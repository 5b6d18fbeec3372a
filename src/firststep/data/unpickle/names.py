"""The names that a pickle of data may use, and what calling each of them does. Nothing is imported."""

from __future__ import annotations

from collections.abc import Callable
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


def _dtype(code: Any) -> np.dtype[Any]:
    dtype = np.dtype(as_text(code))
    if dtype.hasobject or dtype.names:
        raise FirststepError(f"arrays of type {dtype} are not data")
    return dtype


def make_array(data: Any, dtype: np.dtype[Any], shape: tuple[int, ...], fortran: bool) -> Any:
    if dtype.hasobject or not isinstance(data, bytes | bytearray | BytesInFile):
        raise FirststepError("an array of objects is not data")
    if isinstance(data, BytesInFile):
        return ArrayInFile(data, dtype, shape, fortran)
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _encode(text: Any, encoding: str) -> Any:
    if encoding != "latin1":
        raise FirststepError(f"text in the encoding {encoding!r} is not data")
    return text if isinstance(text, BytesInFile) else text.encode("latin-1")


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
    "dict": lambda *content: dict(*content),
    "defaultdict": lambda *ignored: {},
    "set": lambda *content: set(*content),
    "frozenset": lambda *content: frozenset(*content),
    "int": lambda *content: int(*content),
}
