"""What each opcode of a pickle does; those that are not listed are refused."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from firststep.data.regular_files import open_regular
from firststep.data.unpickle.machine import Machine
from firststep.data.unpickle.names import key, pairs
from firststep.errors import FirststepError

_NOT_DATA = (
    *(struct.error, ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError),
    *(MemoryError, RecursionError),
)
"""Raised where the bytes are not a pickle, or one that ends early, or one made to fill the memory."""


def load_pickle(path: Path) -> Any:
    """The content of a data pickle; ``FirststepError`` if it holds anything but data."""
    try:
        with open_regular(path) as file:
            return Machine(file, str(path)).run(_ACTIONS)
    except _NOT_DATA as error:
        reason = str(error) or type(error).__name__
        raise FirststepError(f"{path} is not a complete pickle of arrays and lists ({reason})") from None


def _marked(kind: Callable[[list[Any]], Any]) -> Callable[[Machine], None]:
    def action(machine: Machine) -> None:
        machine.push(kind(machine.to_mark()))

    return action


_ACTIONS: dict[bytes, Callable[[Machine], Any]] = {
    pickle.PROTO: lambda m: m.read(1),
    pickle.FRAME: lambda m: m.read(8),
    pickle.MARK: Machine.mark,
    pickle.POP: lambda m: m.stack.pop() if m.stack else m.to_mark(),
    pickle.POP_MARK: Machine.to_mark,
    pickle.NONE: lambda m: m.push(None),
    pickle.NEWTRUE: lambda m: m.push(True),
    pickle.NEWFALSE: lambda m: m.push(False),
    pickle.INT: Machine.integer_line,
    pickle.LONG: Machine.integer_line,
    pickle.BININT: lambda m: m.push(m.number("<i")),
    pickle.BININT1: lambda m: m.push(m.number("<B")),
    pickle.BININT2: lambda m: m.push(m.number("<H")),
    pickle.LONG1: lambda m: m.push(int.from_bytes(m.read(m.number("<B")), "little", signed=True)),
    pickle.FLOAT: lambda m: m.push(float(m.line())),
    pickle.BINFLOAT: lambda m: m.push(m.number(">d")),
    pickle.SHORT_BINSTRING: lambda m: m.string("<B"),
    pickle.BINSTRING: lambda m: m.string("<I"),
    pickle.SHORT_BINBYTES: lambda m: m.string("<B"),
    pickle.BINBYTES: lambda m: m.string("<I"),
    pickle.BINBYTES8: lambda m: m.string("<Q"),
    pickle.BYTEARRAY8: lambda m: m.string("<Q"),
    pickle.SHORT_BINUNICODE: lambda m: m.string("<B", text=True),
    pickle.BINUNICODE: lambda m: m.string("<I", text=True),
    pickle.BINUNICODE8: lambda m: m.string("<Q", text=True),
    pickle.EMPTY_TUPLE: lambda m: m.push(()),
    pickle.TUPLE1: lambda m: m.tuple_of(1),
    pickle.TUPLE2: lambda m: m.tuple_of(2),
    pickle.TUPLE3: lambda m: m.tuple_of(3),
    pickle.TUPLE: _marked(tuple),
    pickle.EMPTY_LIST: lambda m: m.push([]),
    pickle.LIST: _marked(list),
    pickle.APPEND: Machine.append,
    pickle.APPENDS: Machine.appends,
    pickle.EMPTY_DICT: lambda m: m.push({}),
    pickle.DICT: _marked(lambda items: dict(pairs(items))),
    pickle.SETITEM: Machine.setitem,
    pickle.SETITEMS: Machine.setitems,
    pickle.EMPTY_SET: lambda m: m.push(set()),
    pickle.ADDITEMS: Machine.additems,
    pickle.FROZENSET: _marked(lambda items: frozenset(map(key, items))),
    pickle.PUT: lambda m: m.remember(int(m.line())),
    pickle.BINPUT: lambda m: m.remember(m.number("<B")),
    pickle.LONG_BINPUT: lambda m: m.remember(m.number("<I")),
    pickle.MEMOIZE: lambda m: m.remember(len(m.memo)),
    pickle.GET: lambda m: m.push(m.memo[int(m.line())]),
    pickle.BINGET: lambda m: m.push(m.memo[m.number("<B")]),
    pickle.LONG_BINGET: lambda m: m.push(m.memo[m.number("<I")]),
    pickle.GLOBAL: lambda m: m.name(m.line(), m.line()),
    pickle.STACK_GLOBAL: Machine.global_from_stack,
    pickle.REDUCE: Machine.reduce,
    pickle.BUILD: Machine.build,
    pickle.READONLY_BUFFER: lambda m: None,
}
