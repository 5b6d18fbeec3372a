"""Values read from a pickle: plain ones, and long byte strings that stay in the file until needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firststep.data.regular_files import open_regular
from firststep.errors import FirststepError


@dataclass(frozen=True, slots=True)
class BytesInFile:
    """A byte string left in the file."""

    path: str
    offset: int
    length: int
    is_text: bool
    """whether the file holds UTF-8 text whose Latin-1 form the bytes are, as Python 3 writes at protocol 2"""

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        with open_regular(self.path) as file:
            file.seek(self.offset)
            raw = file.read(self.length)
        try:
            return raw.decode("utf-8").encode("latin-1") if self.is_text else raw
        except UnicodeError:
            raise FirststepError(f"{self.path}: text where bytes are expected") from None


@dataclass(slots=True)
class PickledArray:
    """A numpy array, usually left in the file. Callers want its bytes (a PNG) or its numbers (pixels)."""

    data: bytes | BytesInFile = b""
    dtype: Any = None
    """an ``np.dtype``; None until the array is filled"""
    shape: tuple[int, ...] = ()
    fortran: bool = False

    def fill(self, data: Any, dtype: Any, shape: Any, fortran: bool) -> PickledArray:
        """Set the content once it fits the shape. A pickle makes an array first and fills it later."""
        if not isinstance(dtype, np.dtype) or not isinstance(data, bytes | BytesInFile):
            raise FirststepError("an array of objects is not data")
        if len(shape) > 64 or not all(type(side) is int and side >= 0 for side in shape):
            raise ValueError("the shape of an array is not made of at most 64 whole numbers")
        needed = math.prod(shape) * dtype.itemsize
        # UTF-8 spends one or two bytes on a Latin-1 character.
        most = 2 * needed if isinstance(data, BytesInFile) and data.is_text else needed
        if not needed <= len(data) <= most:
            raise ValueError(f"an array of shape {list(shape[:8])} does not fit its {len(data)} bytes")
        self.data, self.dtype, self.shape, self.fortran = data, dtype, tuple(shape), fortran
        return self

    def open(self) -> np.ndarray:
        """Return the array, mapped into memory where the file holds its bytes as they are."""
        order: Any = "F" if self.fortran else "C"
        if isinstance(self.data, BytesInFile) and not self.data.is_text:
            return np.memmap(self.data.path, self.dtype, "r", self.data.offset, self.shape, order)
        return np.frombuffer(self.read(), self.dtype).reshape(self.shape, order=order)

    def read(self) -> bytes:
        if self.dtype is None:
            raise ValueError("it has no content")
        return self.data if isinstance(self.data, bytes) else self.data.read()


EncodedBytes = bytes | bytearray | np.ndarray | BytesInFile | PickledArray


def as_array(value: Any, path: Path | str) -> np.ndarray:
    """Return an array or a flat list of numbers or names as an array."""
    try:
        if isinstance(value, PickledArray):
            return value.open()
        if isinstance(value, np.ndarray):
            return value
        if isinstance(value, list | tuple):
            # A few bytes of a pickle can make a list that repeats itself without end, so lists must be flat.
            if all(isinstance(item, int | float | str | bytes | np.generic) for item in value):
                return np.asarray(value)
            raise FirststepError(f"{path}: expected a list of numbers or names, found others in it")
    except (OSError, OverflowError, ValueError) as error:
        raise FirststepError(f"{path}: an array cannot be read ({error})") from None
    raise FirststepError(f"{path}: expected an array, found {type(value).__name__}")


def as_whole_numbers(value: Any, path: Path | str) -> np.ndarray:
    """Return int64 [n]."""
    numbers = as_array(value, path).ravel()
    if numbers.size and not np.issubdtype(numbers.dtype, np.integer):
        raise FirststepError(f"{path}: expected whole numbers, found {numbers.dtype}")
    if numbers.size and not -(2**62) < numbers.min() <= numbers.max() < 2**62:
        raise FirststepError(f"{path}: a number is too large")
    return numbers.astype(np.int64)


def as_names(value: Any, path: Path | str) -> list[str]:
    if not isinstance(value, list | tuple):
        value = as_array(value, path).ravel().tolist()
    return [as_name(item, path) for item in value]


def as_name(value: Any, path: Path | str) -> str:
    try:
        return as_text(value)
    except TypeError as error:
        raise FirststepError(f"{path}: {error}") from None


def as_text(value: Any) -> str:
    """Return a name as text. Strings of Python 2 arrive as bytes, and some files use numbers as names."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, str | int | float | np.generic):
        return str(value)
    raise TypeError(f"expected a name, found {type(value).__name__}")


def as_bytes(value: Any, path: Path | str) -> bytes:
    """Return the bytes of a byte string or of an array of bytes, such as OpenCV's imencode returns."""
    if isinstance(value, BytesInFile | PickledArray):
        try:
            return value.read()
        except ValueError as error:
            raise FirststepError(f"{path}: an array cannot be read ({error})") from None
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    raise FirststepError(f"{path}: expected encoded images, found {type(value).__name__}")


def with_text_keys(value: Any, path: Path | str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FirststepError(f"{path}: expected a dictionary, found {type(value).__name__}")
    content: dict[str, Any] = {}
    for key, item in value.items():
        name = as_name(key, path)
        if name in content:
            raise FirststepError(f"{path}: two entries have the same name: {name!r}; rename or merge one")
        content[name] = item
    return content
