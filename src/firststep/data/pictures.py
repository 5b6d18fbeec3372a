"""The pictures of one class, wherever they are kept: counted at once, decoded one at a time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from PIL import Image

from firststep.data.pickled import Kept, as_bytes
from firststep.data.preprocessing import Preprocessing, decode


class Pictures(Protocol):
    def __len__(self) -> int: ...

    def name(self, index: int) -> str:
        """What an error message calls this picture."""

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        """uint8 [H, W, C]; ``FirststepError`` with its name if it is broken."""


@dataclass(frozen=True)
class FilePictures:
    """One file a picture."""

    paths: Sequence[str]
    turned: int = 0
    """quarter turns to the left, for Omniglot's extra classes"""

    def __len__(self) -> int:
        return len(self.paths)

    def name(self, index: int) -> str:
        return self.paths[index]

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        pixels = decode(self.paths[index], self.paths[index], preprocessing)
        return np.rot90(pixels, self.turned) if self.turned else pixels


@dataclass(frozen=True)
class ArrayPictures:
    """Rows of one big uint8 array [N, H, W, C], usually still on disk."""

    array: np.ndarray
    rows: Sequence[int]
    file: str
    reversed_channels: bool = False
    """BGR, as OpenCV writes it"""

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, index: int) -> str:
        return f"picture {self.rows[index]} of {self.file}"

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        picture = np.asarray(self.array[self.rows[index]])
        if self.reversed_channels:
            picture = picture[:, :, ::-1]
        return preprocessing.pixels(Image.fromarray(np.ascontiguousarray(picture)))


@dataclass(frozen=True)
class EncodedPictures:
    """PNG or JPEG bytes in a list, usually still on disk."""

    items: Sequence[Kept]
    rows: Sequence[int]
    file: str

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, index: int) -> str:
        return f"picture {self.rows[index]} of {self.file}"

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        encoded = as_bytes(self.items[self.rows[index]], self.file)
        return decode(io.BytesIO(encoded), self.name(index), preprocessing)
