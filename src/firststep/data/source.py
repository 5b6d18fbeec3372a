"""The content of a dataset before any image is decoded: splits of classes, each with its images."""

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
from firststep.data.pickled_values import EncodedBytes, as_bytes
from firststep.data.preprocessing import Preprocessing, decode
from firststep.errors import FirststepError

SPLITS = ("train", "val", "test")
UNSPLIT = "all"
"""Name of the only split of a source that has yet to be divided into train, val and test."""


class ClassImages(Protocol):
    """The images of one class, wherever they are stored; decoded one at a time.

    Examples:
        >>> from firststep.data import ArrayImages, ClassImages
        >>> images: ClassImages = ArrayImages(np.zeros((4, 16, 16, 3), np.uint8), range(4), "sprites.npy")
        >>> len(images), images.name(2)
        (4, 'image 2 of sprites.npy')
    """

    def __len__(self) -> int: ...

    def name(self, index: int) -> str:
        """Return the name of this image for messages."""

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        """Return uint8 [H, W, C]; raise ``FirststepError`` with the name of a broken image."""


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
    """whether the channels are in the order BGR, as OpenCV writes them"""

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
    """A list of PNG or JPEG byte strings, usually still on disk.

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
    """The images of another class, rotated anticlockwise."""

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
    """The classes of each split, with their images.

    Examples:
        >>> from firststep.data import FileImages, Source
        >>> classes = {"cat": FileImages(["cat-1.jpg"]), "dog": FileImages(["dog-1.jpg"])}
        >>> source = Source("my photographs", {"all": classes})
        >>> list(source.splits["all"])
        ['cat', 'dog']
    """

    layout: str
    """what was recognised on disk, in one line"""
    splits: Mapping[str, Mapping[str, ClassImages]]
    """{split: {class: images}} for ``train``, ``val`` and ``test``, or ``all`` alone, divided by a seed"""
    ignored: tuple[str, ...] = field(default=())
    """files that were ignored because they are not part of the dataset"""
    notes: tuple[str, ...] = field(default=())
    """remarks for the user, one line each"""
    parallel: bool = True
    """False if images are computed in Python, which threads do not speed up"""
    named: bool = True
    """False if the files number their classes instead of naming them"""

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
    """Return the classes sorted by name; refuse a name that occurs twice."""
    classes: dict[str, ClassImages] = {}
    for name, images in sorted(pairs, key=lambda pair: pair[0]):
        if name in classes:
            raise FirststepError(f"two classes have the same name: {name!r}; rename or merge one")
        classes[name] = images
    return classes


def with_seeded_split(source: Source, seed: int) -> Source:
    """Divide the classes of an unsplit source: 64 % train, 16 % validate, 20 % test, drawn from the seed."""
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
    """Add each class rotated by 90, 180 and 270 degrees as classes of their own."""
    splits: dict[str, dict[str, ClassImages]] = {}
    for split, classes in source.splits.items():
        splits[split] = {}
        for name, images in classes.items():
            splits[split][name] = images
            for turns in (1, 2, 3):
                splits[split][f"{name}@{90 * turns}"] = RotatedImages(images, turns)
    return replace(source, splits=splits)
