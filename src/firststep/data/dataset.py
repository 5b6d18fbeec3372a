"""A dataset that is open: its splits, mapped from the cache, with what was found when that was made."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from firststep.data.cache_record import CacheRecord, read_checks
from firststep.data.pixel_checks import PixelChecks, damaged
from firststep.data.preprocessing import Preprocessing
from firststep.errors import FirststepError


@dataclass(frozen=True)
class Split:
    """The images of one split, class after class.

    Examples:
        >>> split = dataset.split("val")
        >>> len(split.classes), split.counts[0], split.images.shape
        (81, 40, (3240, 16, 16, 1))
    """

    dataset: str
    """the dataset's name, part of what names an episode"""
    name: str
    classes: list[str]
    counts: list[int]
    """images of each class"""
    images: np.ndarray
    """uint8 [N, H, W, C], mapped from disk; ``pixels`` reads from them what it checks"""
    preprocessing: Preprocessing
    checks: PixelChecks | None = field(default=None, repr=False, compare=False)
    """checksums of the images, where they come from a cache"""

    def pixels(self, rows: np.ndarray) -> np.ndarray:
        """A copy of some images, uint8 [n, H, W, C]; ``FirststepError`` if the cache is damaged there."""
        images: np.ndarray = np.asarray(self.images)[
            rows
        ]  # indexing a memmap itself costs a memmap each time
        if self.checks is not None:
            self.checks.check(rows, images)
        return images

    def normalise(self, pixels: np.ndarray) -> np.ndarray:
        """What ``pixels`` gave, as a network takes it."""
        return self.preprocessing.normalise(pixels)

    def inputs(self, rows: np.ndarray) -> np.ndarray:
        """What a network gets for some images: float32 [n, C, H, W]."""
        return self.normalise(self.pixels(rows))

    def starts(self) -> list[int]:
        """The row of each class's first image."""
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]]).astype(int).tolist()


@dataclass(frozen=True)
class Dataset:
    """Decoded images in splits by class, with the fingerprint of all their pixels.

    Examples:
        >>> dataset.name, list(dataset.record.splits), dataset.preprocessing.image_size
        ('glyphs', ['train', 'val', 'test'], 16)
        >>> len(dataset.split("test").classes)
        145
    """

    name: str
    fingerprint: str
    """a hash of every decoded pixel, the class names and the preprocessing: equal means equal data"""
    preprocessing: Preprocessing
    folder: Path
    """the cache"""
    record: CacheRecord
    """what was found when the cache was made: layout, notes, odd files, differences, counts"""

    @property
    def channels(self) -> int:
        return self.preprocessing.channels

    @property
    def image_size(self) -> int:
        return self.preprocessing.image_size

    @property
    def mean(self) -> tuple[float, ...]:
        return self.preprocessing.mean

    @property
    def std(self) -> tuple[float, ...]:
        return self.preprocessing.std

    @property
    def splits(self) -> list[str]:
        return list(self.record.splits)

    def split(self, name: str) -> Split:
        if name not in self.record.splits:
            raise FirststepError(f"{self.name} has no split {name!r}; it has {', '.join(self.splits)}")
        facts = self.record.splits[name]
        size = self.image_size
        shape = (sum(facts.counts), size, size, self.channels)
        try:
            checks = read_checks(self.folder, name, facts)
            if shape[0] == 0:
                images = np.empty(shape, dtype=np.uint8)  # an empty file cannot be mapped
            else:
                images = np.memmap(self.folder / f"{name}.u8", np.uint8, "r", shape=shape)
        except (FirststepError, OSError, ValueError) as error:  # shorter than when the dataset was opened
            raise damaged(self.folder, f"{name} cannot be read ({error})") from None
        return Split(self.name, name, facts.classes, facts.counts, images, self.preprocessing, checks)
