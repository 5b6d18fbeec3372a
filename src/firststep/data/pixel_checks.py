"""A checksum of every cached image, compared the first time a process uses the image.

The pixels are mapped into memory, so nobody reads them as a whole: a flipped bit, or another file of the same
size, would go unseen. What is compared are the very bytes that a model is about to get.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from firststep.errors import FirststepError

DAMAGED = "damaged"
"""A file of this name in a cache says that it must be made again."""


def checksum(image: Any) -> int:
    """Of anything with bytes: 4 of them, which two different images share once in four billion."""
    return zlib.crc32(image)


class PixelChecks:
    """The checksums of one split, and which of its images were compared already."""

    def __init__(self, folder: Path, split: str, sums: np.ndarray) -> None:
        self.folder, self.split, self.sums = folder, split, sums
        self._unseen = np.ones(len(sums), dtype=bool)

    def check(self, rows: np.ndarray, images: np.ndarray) -> None:
        """``images`` are those of the rows; ``FirststepError`` if one is not as it was stored."""
        for place in np.flatnonzero(self._unseen[rows]):
            row = int(rows[place])
            if checksum(images[place]) != self.sums[row]:
                raise damaged(self.folder, f"image {row} of {self.split} is not as it was stored")
            self._unseen[row] = False


def damaged(folder: Path, what: str) -> FirststepError:
    """The error for a damaged cache, which is marked so that whoever opens it next makes it again."""
    hint = "delete that folder and start again"
    with contextlib.suppress(OSError):  # a cache of somebody else's
        (folder / DAMAGED).touch()
        hint = "start again: the cache is then made anew"
    return FirststepError(f"the cache {folder} is damaged: {what}; {hint}")


def survey(file: Path, image_bytes: int) -> tuple[str, np.ndarray]:
    """SHA-256 of a split's file, and the checksum of every image in it."""
    digest, sums = hashlib.sha256(), []
    with open(file, "rb") as pixels:
        while image := pixels.read(image_bytes):
            digest.update(image)
            sums.append(checksum(image))
    return digest.hexdigest(), np.array(sums, dtype="<u4")
