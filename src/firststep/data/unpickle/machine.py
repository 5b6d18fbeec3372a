"""The stack machine that reads pickles of data.

A pickle is a program, and Python's unpickler runs whatever it names. This machine knows only the opcodes
that data needs, looks names up in a fixed table and imports nothing. Long byte strings stay in the file and
are read on demand, so a pickle of twelve gigabytes needs little memory; numpy arrays become memory maps
into the pickle itself.
"""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Callable, Mapping, Sized
from typing import Any, BinaryIO

import numpy as np

from firststep.data.unpickle.names import ALLOWED, CALLS, AllowedName, Unfinished, key, make_array, pairs
from firststep.data.unpickle.values import BytesInFile, as_text
from firststep.errors import FirststepError

LONG = 256
"""Byte strings of at least this length are left in the file."""


LONGEST_LINE = 1 << 16
MOST_TYPES = 1000
"""Types with a byte order of their own; a pickle of data has a few."""


class Machine:
    """The part of the pickle protocol that data needs."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.file, self.path = file, path
        self.size = os.fstat(file.fileno()).st_size
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.copied = self.types = 0

    def run(self, actions: Mapping[bytes, Callable[[Machine], Any]]) -> Any:
        while True:
            opcode = self.file.read(1)
            if not opcode:
                raise EOFError("it ends early")
            if opcode == pickle.STOP:
                return _finished(self.stack.pop())
            action = actions.get(opcode)
            if action is None:
                raise FirststepError(
                    f"{self.path}: pickle opcode {opcode!r} is refused: data does not need it"
                )
            action(self)

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.read(struct.calcsize(form)))[0]

    def read(self, length: int) -> bytes:
        data = self.file.read(length)
        if len(data) != length:
            raise EOFError("it ends early")
        return data

    def line(self) -> str:
        line = self.file.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise EOFError("a line does not end")
        return line[:-1].decode("ascii")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def string(self, form: str, text: bool = False) -> None:
        length = self.number(form)
        if self.file.tell() + length > self.size:
            raise EOFError("it ends early")
        if length >= LONG:
            left_in_file = BytesInFile(self.path, self.file.tell(), length, text)
            self.file.seek(length, 1)
            self.push(left_in_file)
        else:
            data = self.read(length)
            self.push(data.decode("utf-8", "surrogatepass") if text else data)

    def to_mark(self) -> list[Any]:
        items, self.stack = self.stack, self.below.pop()
        return [_finished(item) for item in items]

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def pop(self) -> Any:
        return _finished(self.stack.pop())

    def name(self, module: Any, attribute: Any) -> None:
        if not isinstance(module, str) or not isinstance(attribute, str):
            raise TypeError("a name that is no text")
        alias = ALLOWED.get(f"{module} {attribute}")
        if alias is None:
            raise FirststepError(
                f"{self.path}: this pickle wants to use {module}.{attribute}, which is not data; "
                "refused, nothing was run"
            )
        self.push(AllowedName(alias))

    def reduce(self) -> None:
        arguments, function = self.pop(), self.stack.pop()
        if not isinstance(function, AllowedName) or function not in CALLS:
            raise FirststepError(f"{self.path}: this pickle calls something that is not data; refused")
        # Few opcodes could copy one long list again and again.
        self.copied += sum(len(value) for value in arguments if isinstance(value, Sized))
        if self.copied > self.size:
            raise ValueError("it holds more than its size allows")
        try:
            self.push(CALLS[function](*arguments))
        except FirststepError as error:
            raise FirststepError(f"{self.path}: {error}") from None

    def build(self) -> None:
        state, target = self.pop(), self.stack[-1]
        if isinstance(target, np.dtype):
            # (version, byte order, ...): the memo must see the ordered type too, so replace in place.
            ordered = {"<": target.newbyteorder("<"), ">": target.newbyteorder(">")}
            self.types += 1
            if self.types > MOST_TYPES:
                raise ValueError("it has too many types of numbers")
            self.replace(target, ordered.get(as_text(state[1]), target))
        elif isinstance(target, Unfinished):
            _, shape, dtype, fortran, data = state
            target.value = make_array(data, dtype, tuple(shape), bool(fortran))
        else:
            raise FirststepError(f"{self.path}: this pickle sets up an object that is not data; refused")

    def replace(self, old: Any, new: Any) -> None:
        self.stack[-1] = new
        for place, value in self.memo.items():
            if value is old:
                self.memo[place] = new

    def append(self) -> None:
        item = self.pop()
        self.stack[-1].append(item)

    def appends(self) -> None:
        items = self.to_mark()
        self.stack[-1].extend(items)

    def setitem(self) -> None:
        value, name = self.pop(), self.pop()
        self.stack[-1].update(pairs([name, value]))

    def setitems(self) -> None:
        items = self.to_mark()
        self.stack[-1].update(pairs(items))

    def additems(self) -> None:
        items = self.to_mark()
        self.stack[-1].update(map(key, items))

    def tuple_of(self, count: int) -> None:
        items = [_finished(item) for item in self.stack[len(self.stack) - count :]]
        del self.stack[len(self.stack) - count :]
        self.push(tuple(items))

    def global_from_stack(self) -> None:
        attribute, module = self.pop(), self.pop()
        self.name(module, attribute)

    def integer_line(self) -> None:
        text = self.line().removesuffix("L")
        self.push({"00": False, "01": True}.get(text, int(text)))

    def remember(self, place: int) -> None:
        self.memo[place] = self.stack[-1]


def _finished(value: Any) -> Any:
    return value.value if isinstance(value, Unfinished) and value.value is not None else value
