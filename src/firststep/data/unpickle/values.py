"""What an unpickled file consists of: values, and long byte strings that stay in the file until needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            raw = file.read(self.length)
        return raw.decode("utf-8").encode("latin-1") if self.is_text else raw


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
    """An array, opened if it was left in the file; lists of numbers too."""
    if isinstance(value, ArrayInFile):
        return value.open()
    if isinstance(value, np.ndarray | list | tuple):
        return np.asarray(value)
    raise FirststepError(f"{path}: expected an array, found {type(value).__name__}")


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
    """Python 2 strings arrive as bytes."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def with_text_keys(value: Any, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FirststepError(f"{path}: expected a dictionary, found {type(value).__name__}")
    return {as_text(key): item for key, item in value.items()}
