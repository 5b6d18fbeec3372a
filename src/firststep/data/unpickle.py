"""Read untrusted pickles: numpy arrays and plain containers, nothing else, and never all in memory.

A pickle is a program that names the functions it calls. Python's unpickler asks ``find_class`` for each of
them, and ours hands out only the functions of ``_ALLOWED``. Python's fast unpickler, written in C, still has
three gaps that no ``find_class`` closes. It reads every string into memory, though the pickles of
tieredImageNet have 12 GB. It hashes whatever is used as a key: nested tuples overflow the C stack, and tuples
that hold each other twice take for ever. It allocates a table as long as the largest memo index. So
``_DataUnpickler`` derives from its counterpart in Python, which calls one method per opcode, and replaces the
methods that matter.
"""

from __future__ import annotations

import os
import pickle
import re
import struct
from collections.abc import Callable, Iterator, Sized
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from firststep.data.pickled_values import BytesInFile, PickledArray, as_text
from firststep.data.regular_files import open_regular
from firststep.errors import FirststepError

LONG = 256
"""Byte strings of at least this length stay in the file."""
LONGEST_LINE = 1 << 16


def load_pickle(path: Path) -> Any:
    """Return the content of a data pickle; raise ``FirststepError`` if it holds anything but data."""
    with open_regular(path) as file:
        try:
            return _DataUnpickler(file, str(path)).load()
        except FirststepError as error:
            raise FirststepError(f"{path}: {error}") from None
        except _NOT_DATA as error:
            reason = str(error) or type(error).__name__
            raise FirststepError(f"{path} is not a complete pickle of arrays and lists ({reason})") from None


_NOT_DATA = (
    *(pickle.UnpicklingError, struct.error, ArithmeticError, AttributeError, EOFError, LookupError),
    *(TypeError, ValueError, MemoryError, RecursionError),
)
"""Raised where the bytes are not a pickle, or end early, or are made to fill the memory."""


class _Type:
    """A dtype. The byte order follows in a BUILD opcode, after the memo has stored the object."""

    def __init__(self, code: Any, *ignored: Any) -> None:
        name = as_text(code)
        if not re.fullmatch(r"[|<>=]?[?biufcSU]\d{0,9}", name):
            raise FirststepError(f"arrays of type {name[:40]!r} are not data")
        self.dtype = np.dtype(name)


def _scalar(kind: _Type, data: bytes) -> np.generic:
    value: np.generic = np.frombuffer(data, kind.dtype)[0]
    return value


def _frombuffer(data: Any, kind: _Type, shape: tuple[int, ...], order: str) -> PickledArray:
    return PickledArray().fill(data, kind.dtype, shape, order == "F")


def _encode(text: Any, encoding: str) -> bytes | BytesInFile:
    if encoding not in ("latin1", "latin-1"):
        raise FirststepError(f"text in the encoding {as_text(encoding)[:40]!r} is not data")
    return text if isinstance(text, BytesInFile) else text.encode("latin-1")


def _bytearray(content: Any = b"", encoding: str = "latin1") -> bytes | BytesInFile:
    return content if isinstance(content, bytes) else _encode(content, encoding)


def _key(value: Any) -> Any:
    """Return a value that is quick to hash: an atom or a tuple of atoms."""
    parts = value if isinstance(value, tuple) else (value,)
    if not all(part is None or isinstance(part, str | bytes | int | float | np.generic) for part in parts):
        raise TypeError(f"a {type(value).__name__} as a key is not data")
    return value


def _pairs(items: list[Any]) -> Iterator[tuple[Any, Any]]:
    return ((_key(name), value) for name, value in zip(items[::2], items[1::2], strict=True))


_ALLOWED: dict[str, Any] = {
    "numpy._core.multiarray _reconstruct": lambda *ignored: PickledArray(),
    "numpy._core.multiarray scalar": _scalar,
    "numpy._core.numeric _frombuffer": _frombuffer,
    "numpy dtype": _Type,
    "_codecs encode": _encode,
    "builtins bytes": lambda: b"",  # without arguments: bytes(10**12) would be a terabyte of zeros
    "builtins bytearray": _bytearray,
    "builtins set": lambda items=(): set(map(_key, items)),
    "builtins frozenset": lambda items=(): frozenset(map(_key, items)),
    "collections OrderedDict": lambda items=(): {_key(name): value for name, value in items},
    "collections defaultdict": lambda *factory: {},
    # Arguments of the above, which nothing calls.
    **dict.fromkeys(("numpy ndarray", "builtins list", "builtins dict", "builtins int"), "a type"),
}
"""Global name in a pickle → our replacement. Nothing is imported."""


class _Opcodes(dict[int, Callable[[Any], None]]):
    def __missing__(self, opcode: int) -> Callable[[Any], None]:
        raise FirststepError(f"pickle opcode {bytes([opcode])!r} is refused: data does not need it")


_INHERITED = """
    PROTO STOP MARK POP POP_MARK NONE NEWTRUE NEWFALSE INT LONG BININT BININT1 BININT2 LONG1 FLOAT BINFLOAT
    EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3 TUPLE EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT EMPTY_SET
    PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET GLOBAL STACK_GLOBAL
"""
_REPLACED = "FRAME REDUCE BUILD DICT SETITEM SETITEMS ADDITEMS FROZENSET"
_STRINGS = {
    "SHORT_BINSTRING SHORT_BINBYTES": ("<B", False),
    "BINSTRING BINBYTES": ("<I", False),
    "BINBYTES8 BYTEARRAY8": ("<Q", False),
    "SHORT_BINUNICODE": ("<B", True),
    "BINUNICODE": ("<I", True),
    "BINUNICODE8": ("<Q", True),
}
"""Opcodes, the format of the length that follows them, and whether the content is text."""


def _codes(names: str) -> dict[str, int]:
    """Return the opcode of each name."""
    return {name: getattr(pickle, name)[0] for name in names.split()}


class _DataUnpickler(pickle._Unpickler):
    """Python's unpickler, reduced to the opcodes that data needs."""

    dispatch = _Opcodes()
    stack: list[Any]
    append: Callable[[Any], None]
    read: Callable[[int], bytes]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, file: BinaryIO, path: str) -> None:
        super().__init__(file)
        self._file_readline = partial(file.readline, LONGEST_LINE)
        self.file, self.path = file, path
        self.size, self.copied = os.fstat(file.fileno()).st_size, 0

    def find_class(self, module: str, name: str) -> Any:
        newest = module.replace("__builtin__", "builtins").replace("numpy.core", "numpy._core")
        if f"{newest} {name}" not in _ALLOWED:
            raise FirststepError(
                f"this pickle wants to use {module}.{name}, which is not data; refused, nothing was run"
            )
        return _ALLOWED[f"{newest} {name}"]

    def load_frame(self) -> None:
        self.read(8)  # A frame only tells how far to read ahead.

    def load_string(self, form: str, text: bool) -> None:
        (length,) = struct.unpack(form, self.read(struct.calcsize(form)))
        if length < LONG:
            data = self.read(length)
            self.append(data.decode("utf-8", "surrogatepass") if text else data)
            return
        offset = self.file.tell()
        if offset + length > self.size:
            raise EOFError("it ends early")
        self.append(BytesInFile(self.path, offset, length, text))
        self.file.seek(length, os.SEEK_CUR)

    def load_reduce(self) -> None:
        # Without a bound, few opcodes could turn one long list into many sets.
        arguments = self.stack[-1]
        containers = (value for value in arguments[:4] if not isinstance(value, str | bytes | BytesInFile))
        self.copied += len(arguments) + sum(len(value) for value in containers if isinstance(value, Sized))
        if self.copied > self.size:
            raise ValueError("it holds more than its size allows")
        super().load_reduce()  # type: ignore[misc]

    def load_build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, _Type):
            if (order := as_text(state[1])) in ("<", ">"):
                target.dtype = target.dtype.newbyteorder(order)  # type: ignore[arg-type]
        elif isinstance(target, PickledArray):
            _, shape, kind, fortran, data = state
            target.fill(data, getattr(kind, "dtype", None), shape, bool(fortran))
        else:
            raise FirststepError("this pickle sets up an object that is not data; refused")

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.append(dict(_pairs(items)))

    def load_setitem(self) -> None:
        value, name = self.stack.pop(), self.stack.pop()
        self.update(dict, _pairs([name, value]))

    def load_setitems(self) -> None:
        items = self.pop_mark()
        self.update(dict, _pairs(items))

    def load_additems(self) -> None:
        items = self.pop_mark()
        self.update(set, map(_key, items))

    def load_frozenset(self) -> None:
        items = self.pop_mark()
        self.append(frozenset(map(_key, items)))

    def update(self, kind: type[Any], items: Iterator[Any]) -> None:
        target: Any = self.stack[-1]
        if not isinstance(target, kind):
            raise TypeError(f"expected a {kind.__name__}, found {type(target).__name__}")
        target.update(items)


_actions = _DataUnpickler.dispatch
_actions.update({code: pickle._Unpickler.dispatch[code] for code in _codes(_INHERITED).values()})
_actions.update(
    {code: getattr(_DataUnpickler, f"load_{name.lower()}") for name, code in _codes(_REPLACED).items()}
)
for _names, (_form, _text) in _STRINGS.items():
    _load = partial(_DataUnpickler.load_string, form=_form, text=_text)
    _actions.update(dict.fromkeys(_codes(_names).values(), _load))
