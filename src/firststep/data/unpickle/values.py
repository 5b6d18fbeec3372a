"""What an unpickled file consists of: values, and long byte strings that stay in the file until needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firststep.data.regular_files import open_regular
from firststep.errors import FirststepError


@dataclass(frozen=True, slots=True)
class BytesInFile:
    """Bytes left in the file."""

    path: str
    offset: int
    length: int
    is_text: bool
    """Python 3 writes bytes at protocol 2 as the UTF-8 text whose Latin-1 form they are"""

    def read(self) -> bytes:
        with open_regular(self.path) as file:
            file.seek(self.offset)
            raw = file.read(self.length)
        try:
            return raw.decode("utf-8").encode("latin-1") if self.is_text else raw
        except UnicodeError:
            raise FirststepError(f"{self.path}: text where bytes are expected") from None


@dataclass(frozen=True, slots=True)
class ArrayInFile:
    """A numpy array left in the file; users need its bytes (a PNG) or its numbers (images)."""

    data: BytesInFile
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool

    def open(self) -> np.ndarray:
        order: Any = "F" if self.fortran else "C"
        if self.data.is_text:
            return np.frombuffer(self.data.read(), self.dtype).reshape(self.shape, order=order)
        return np.memmap(self.data.path, self.dtype, "r", self.data.offset, self.shape, order)


EncodedBytes = bytes | bytearray | np.ndarray | BytesInFile | ArrayInFile


def as_array(value: Any, path: Path | str) -> np.ndarray:
    """An array, opened if it was left in the file; flat lists of numbers or names too."""
    if isinstance(value, ArrayInFile):
        try:
            return value.open()
        except (OSError, ValueError) as error:
            raise FirststepError(f"{path}: an array cannot be read ({error})") from None
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, list | tuple):
        # Lists within lists could be of any size: a pickle may repeat the inner ones.
        if not all(isinstance(item, int | float | str | bytes | np.generic) for item in value):
            raise FirststepError(f"{path}: expected a list of numbers or names, found others in it")
        try:
            return np.asarray(value)
        except (OverflowError, ValueError) as error:
            raise FirststepError(f"{path}: a list is no array ({error})") from None
    raise FirststepError(f"{path}: expected an array, found {type(value).__name__}")


def as_whole_numbers(value: Any, path: Path | str) -> np.ndarray:
    """int64 [n]."""
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


def as_bytes(value: Any, path: Path | str) -> bytes:
    """The bytes of a byte string or of an array of bytes (what OpenCV's imencode returns)."""
    if isinstance(value, BytesInFile):
        return value.read()
    if isinstance(value, ArrayInFile):
        return value.data.read()
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    raise FirststepError(f"{path}: expected encoded images, found {type(value).__name__}")


def as_text(value: Any) -> str:
    """Python 2 strings arrive as bytes; numbers are names too."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, str | int | float | np.generic):
        return str(value)
    raise TypeError(f"expected a name, found {type(value).__name__}")


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
