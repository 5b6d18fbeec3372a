"""What reading a dataset gives before any image is decoded: splits of classes, each with its images."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image

from firststep.data.draws import Draws
from firststep.data.preprocessing import Preprocessing, decode
from firststep.data.unpickle import EncodedBytes, as_bytes
from firststep.errors import FirststepError

SPLITS = ("train", "val", "test")
UNSPLIT = "all"
"""The only split of a source whose classes are still to be divided into train, val and test."""


class ClassImages(Protocol):
    """The images of one class, wherever they are stored: counted at once, decoded one at a time.

    Examples:
        >>> from firststep.data import ArrayImages, ClassImages
        >>> images: ClassImages = ArrayImages(np.zeros((4, 16, 16, 3), np.uint8), range(4), "sprites.npy")
        >>> len(images), images.name(2)
        (4, 'image 2 of sprites.npy')
    """

    def __len__(self) -> int: ...

    def name(self, index: int) -> str:
        """What an error message calls this image."""

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        """uint8 [H, W, C]; ``FirststepError`` with the image's name if it is broken."""


@dataclass(frozen=True)
class FileImages:
    """Image files.

    Examples:
        >>> from firststep.data import FileImages
        >>> len(FileImages([Path("cat-1.jpg"), Path("cat-2.jpg")]))
        2
    """

    paths: Sequence[Path | str]

    def __len__(self) -> int:
        return len(self.paths)

    def name(self, index: int) -> str:
        return str(self.paths[index])

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        return decode(self.paths[index], self.name(index), preprocessing)


@dataclass(frozen=True)
class ArrayImages:
    """Rows of one uint8 array [N, H, W, C], usually mapped from disk.

    Examples:
        >>> from firststep.data import ArrayImages
        >>> pixels = np.zeros((6, 16, 16, 3), dtype=np.uint8)
        >>> len(ArrayImages(pixels, rows=range(2, 6), file="sprites.npy"))
        4
    """

    array: np.ndarray
    rows: Sequence[int]
    file: str
    reversed_channels: bool = False
    """BGR, as OpenCV writes it"""

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, index: int) -> str:
        return f"image {self.rows[index]} of {self.file}"

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        image = np.asarray(self.array[self.rows[index]])
        if self.reversed_channels:
            image = image[:, :, ::-1]
        if image.shape[-1] == 1:
            image = image[:, :, 0]
        return preprocessing.pixels(Image.fromarray(np.ascontiguousarray(image)))


@dataclass(frozen=True)
class EncodedImages:
    """PNG or JPEG bytes in a list, usually still on disk.

    Examples:
        >>> import io
        >>> from PIL import Image
        >>> from firststep.data import EncodedImages
        >>> picture = io.BytesIO()
        >>> Image.new("RGB", (8, 8)).save(picture, "png")
        >>> len(EncodedImages([picture.getvalue()] * 3, rows=range(3), file="images.pkl"))
        3
    """

    items: Sequence[EncodedBytes]
    rows: Sequence[int]
    file: str

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, index: int) -> str:
        return f"image {self.rows[index]} of {self.file}"

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        encoded = as_bytes(self.items[self.rows[index]], self.file)
        return decode(io.BytesIO(encoded), self.name(index), preprocessing)


@dataclass(frozen=True)
class RotatedImages:
    """The images of another class, turned to the left."""

    images: ClassImages
    quarter_turns: int

    def __len__(self) -> int:
        return len(self.images)

    def name(self, index: int) -> str:
        return self.images.name(index)

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        return np.rot90(self.images.pixels(index, preprocessing), self.quarter_turns)


@dataclass(frozen=True)
class Source:
    """For each split its classes, each a name and its images.

    Examples:
        >>> from firststep.data import FileImages, Source
        >>> classes = {"cat": FileImages(["cat-1.jpg"]), "dog": FileImages(["dog-1.jpg"])}
        >>> source = Source("my photographs", {"all": classes})
        >>> list(source.splits["all"])
        ['cat', 'dog']
    """

    layout: str
    """one line: what was recognised on disk"""
    splits: Mapping[str, Mapping[str, ClassImages]]
    """under ``train``, ``val`` and ``test``; or under ``all`` alone, to be divided by class with a seed"""
    odd: tuple[str, ...] = field(default=())
    """files that are not part of the dataset and were ignored"""
    notes: tuple[str, ...] = field(default=())
    """what a user should know, one line each"""
    parallel: bool = True
    """False where images are computed in Python, which threads do not speed up"""
    named: bool = True
    """False where the files number their classes instead of naming them"""

    def __post_init__(self) -> None:
        if not set(self.splits) <= set(SPLITS) and set(self.splits) != {UNSPLIT}:
            raise FirststepError(
                f"splits must be among {', '.join(SPLITS)}, or {UNSPLIT} alone, not {', '.join(self.splits)}"
            )
        seen: dict[str, str] = {}
        for split, classes in self.splits.items():
            for name in classes:
                key = unicodedata.normalize("NFC", name).casefold()
                if key in seen:
                    both = f"{seen[key]!r} and '{split}: {name}'"
                    raise FirststepError(f"two classes have the same name: {both}; rename or merge one")
                seen[key] = f"{split}: {name}"


def collect(pairs: list[tuple[str, ClassImages]]) -> dict[str, ClassImages]:
    """Classes in the order of their names; a name that occurs twice is an error, not a lost class."""
    classes: dict[str, ClassImages] = {}
    for name, images in sorted(pairs, key=lambda pair: pair[0]):
        if name in classes:
            raise FirststepError(f"two classes have the same name: {name!r}; rename or merge one")
        classes[name] = images
    return classes


def with_seeded_split(source: Source, seed: int) -> Source:
    """64 % of the classes train, 16 % validate, 20 % test; which ones depends on the seed alone."""
    if UNSPLIT not in source.splits:
        return source
    classes = source.splits[UNSPLIT]
    names = list(classes)
    shuffled = [names[i] for i in Draws("folder split", seed).distinct(len(names), len(names))]
    test = round(0.2 * len(names))
    val = round(0.16 * len(names))
    chosen = {"test": shuffled[:test], "val": shuffled[test : test + val], "train": shuffled[test + val :]}
    splits = {split: {name: classes[name] for name in sorted(chosen[split])} for split in SPLITS}
    return replace(source, splits=splits, notes=(*source.notes, f"split by class with seed {seed}"))


def with_rotations(source: Source) -> Source:
    """Every class turned by a quarter, a half and three quarters as classes of their own."""
    splits: dict[str, dict[str, ClassImages]] = {}
    for split, classes in source.splits.items():
        splits[split] = {}
        for name, images in classes.items():
            splits[split][name] = images
            for turns in (1, 2, 3):
                splits[split][f"{name}@{90 * turns}"] = RotatedImages(images, turns)
    return replace(source, splits=splits)
