"""Datasets that are open: splits of classes, as arrays in memory or mapped from a cache."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from firststep.data.cache_record import CacheRecord, read_checks
from firststep.data.pixel_checks import PixelChecks, damaged
from firststep.data.preprocessing import Preprocessing
from firststep.errors import FirststepError


class Split:
    """The samples of one split, class after class.

    Examples:
        >>> split = dataset.split("val")
        >>> len(split.classes), split.counts[0], split.images.shape
        (81, 40, (3240, 16, 16, 1))
    """

    dataset: str
    """name of the dataset, part of what identifies an episode"""
    name: str
    classes: list[str]
    counts: list[int]
    """number of samples per class"""
    images: np.ndarray
    """uint8 [N, H, W, C], mapped from disk, or the arrays given to ``from_arrays``; not checked for damage"""

    def __init__(
        self,
        dataset: str,
        name: str,
        classes: list[str],
        counts: list[int],
        images: np.ndarray,
        preprocessing: Preprocessing | None,
        checks: PixelChecks | None = None,
    ) -> None:
        """
        Args:
            preprocessing: how images are normalised; None if the arrays are inputs of a network already.
            checks: checksums of the images, if they come from a cache.
        """
        self.dataset, self.name, self.classes, self.counts = dataset, name, classes, counts
        self.images = images
        self._preprocessing, self.checks = preprocessing, checks

    @property
    def preprocessing(self) -> Preprocessing:
        """Return the preprocessing of the images; ``FirststepError`` if the arrays are not images."""
        return _of_images(self._preprocessing, self.dataset)

    def pixels(self, rows: np.ndarray) -> np.ndarray:
        """Return a copy of some images, uint8 [n, H, W, C]; ``FirststepError`` if the cache is damaged."""
        everything = np.asarray(self.images)  # indexing a memmap makes a memmap each time, which is slow
        images: np.ndarray = everything[rows]
        if self.checks is not None:
            self.checks.check(rows, images)
        return images

    def normalise(self, pixels: np.ndarray) -> np.ndarray:
        """Return the result of ``pixels`` as a network takes it; arrays that are not images are unchanged."""
        return pixels if self._preprocessing is None else self._preprocessing.normalise(pixels)

    def inputs(self, rows: np.ndarray) -> np.ndarray:
        """Return the inputs of a network for some samples: of images float32 [n, C, H, W]."""
        return self.normalise(self.pixels(rows))

    def starts(self) -> list[int]:
        """Return the row of each class's first sample."""
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]]).astype(int).tolist()


class Dataset:
    """Samples in splits by class, with a fingerprint. ``open_dataset`` and ``from_arrays`` make one.

    Examples:
        >>> dataset.name, dataset.splits, dataset.preprocessing.image_size
        ('glyphs', ['train', 'val', 'test'], 16)
        >>> len(dataset.split("test").classes)
        145
    """

    name: str
    fingerprint: str
    """hash of all values, the class names and the preprocessing: equal means equal data"""
    splits: list[str]

    def __init__(
        self, name: str, fingerprint: str, preprocessing: Preprocessing | None, splits: Iterable[str]
    ) -> None:
        self.name, self.fingerprint, self.splits = name, fingerprint, list(splits)
        self._preprocessing = preprocessing

    @property
    def preprocessing(self) -> Preprocessing:
        """Return the preprocessing of the images; ``FirststepError`` if the dataset has no images."""
        return _of_images(self._preprocessing, self.name)

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

    def split(self, name: str) -> Split:
        if name not in self.splits:
            raise FirststepError(f"{self.name} has no split {name!r}; it has {', '.join(self.splits)}")
        return self._open(name)

    def _open(self, split: str) -> Split:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}, {', '.join(self.splits)}, {self.fingerprint}>"


class CachedDataset(Dataset):
    """Decoded images in a cache on disk, as ``open_dataset`` returns them.

    Examples:
        >>> dataset.record.layout
        'drawn from the DejaVu fonts of matplotlib, seed 0'
        >>> (dataset.folder / "train.u8").is_file()
        True
    """

    folder: Path
    """the cache"""
    record: CacheRecord
    """what was found when the cache was made: layout, notes, ignored files, differences, counts"""

    def __init__(self, folder: Path, record: CacheRecord) -> None:
        super().__init__(record.dataset, record.fingerprint, record.preprocessing, record.splits)
        self.folder, self.record = folder, record

    def _open(self, split: str) -> Split:
        found = self.record.splits[split]
        shape = (sum(found.counts), self.image_size, self.image_size, self.channels)
        try:
            checks = read_checks(self.folder, split, found)
            if shape[0] == 0:
                images = np.empty(shape, dtype=np.uint8)  # an empty file cannot be mapped
            else:
                images = np.memmap(self.folder / f"{split}.u8", np.uint8, "r", shape=shape)
        except (FirststepError, OSError, ValueError) as error:  # changed since the dataset was opened
            raise damaged(self.folder, f"{split} cannot be read ({error})") from None
        return Split(self.name, split, found.classes, found.counts, images, self.preprocessing, checks)


def _of_images(preprocessing: Preprocessing | None, name: str) -> Preprocessing:
    if preprocessing is None:
        raise FirststepError(
            f"{name} holds arrays, not images: training by a configuration needs images (uint8); put your "
            "own network into a MetaLearner and draw tasks with Episodes, as examples/signals.py does"
        )
    return preprocessing
