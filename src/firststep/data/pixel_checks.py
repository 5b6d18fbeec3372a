"""A checksum per cached image, compared the first time a process uses the image.

The cache is mapped into memory and never read as a whole, so a flipped bit would go unseen. Hashing the whole
file on opening would notice it, but takes seconds per gigabyte in every process. Checksums of single images
cost nothing at opening, and they cover the very bytes that a model is about to get.
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
"""Name of the file that marks a cache as damaged, so that it is made again."""


def checksum(image: Any) -> int:
    """Return the CRC-32 of anything with bytes."""
    return zlib.crc32(image)


class PixelChecks:
    """The checksums of one split, and which of its images have not been compared yet."""

    def __init__(self, folder: Path, split: str, sums: np.ndarray) -> None:
        self.folder, self.split, self.sums = folder, split, sums
        self._unseen = np.ones(len(sums), dtype=bool)

    def check(self, rows: np.ndarray, images: np.ndarray) -> None:
        """Compare the images of these rows; raise ``FirststepError`` if one is not as it was stored."""
        for place in np.flatnonzero(self._unseen[rows]):
            row = int(rows[place])
            if checksum(images[place]) != self.sums[row]:
                raise damaged(self.folder, f"image {row} of {self.split} is not as it was stored")
            self._unseen[row] = False


def damaged(folder: Path, what: str) -> FirststepError:
    """Return the error for a damaged cache, and mark the cache so that opening it makes it again."""
    hint = "delete that folder and start again"
    with contextlib.suppress(OSError):  # read-only
        (folder / DAMAGED).touch()
        hint = "start again: the cache is then rebuilt"
    return FirststepError(f"the cache {folder} is damaged: {what}; {hint}")


def sha256(file: Path) -> str:
    with open(file, "rb") as pixels:
        return hashlib.file_digest(pixels, "sha256").hexdigest()
