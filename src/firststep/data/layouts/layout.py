"""Layouts: how a dataset is stored on disk, how to recognise it and how to read it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from firststep.data.regular_files import entries
from firststep.data.source import SPLITS, Source
from firststep.errors import FirststepError

DEPTH = 2
"""Number of folder levels below the given path that are searched for a dataset."""

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")


@dataclass(frozen=True)
class Layout:
    """One form of a dataset on disk, as two functions of a folder.

    Examples:
        >>> from firststep.data import ArrayImages, Layout, Source
        >>> def read(root):
        ...     pixels = np.load(root / "sprites.npy", mmap_mode="r")
        ...     images = ArrayImages(pixels, range(len(pixels)), "sprites.npy")
        ...     return Source("sprites.npy", {"all": {"all sprites": images}})
        >>> layout = Layout("sprites.npy", lambda root: list(root.glob("sprites.npy")), read)
    """

    what: str
    """the files or folders looked for, in one line for messages"""
    parts: Callable[[Path], Sequence[Path]]
    """root → files and folders of the dataset; none if the root does not hold this layout"""
    read: Callable[[Path], Source]
    """root → the dataset"""


@dataclass(frozen=True)
class Located:
    """The place where a dataset was found."""

    layout: Layout | None
    """None if the parts are archives that have yet to be unpacked"""
    root: Path
    parts: tuple[Path, ...]


def locate(path: Path, layouts: Sequence[Layout]) -> Located | None:
    """Return the first layout found at the path, in the folders below it, or of which the path is a part."""
    for root in _roots(path):
        for layout in layouts:
            if parts := layout.parts(root):
                return Located(layout, root, tuple(parts))
    # The path may be one part of a dataset, say its train folder, with the rest beside it.
    for layout in layouts:
        parts = layout.parts(path.parent)
        if path in parts:
            return Located(layout, path.parent, tuple(parts))
    return None


def _roots(path: Path, depth: int = DEPTH) -> Iterator[Path]:
    """Yield the folder and its subfolders level by level, so that the nearest match wins."""
    level = [path] if path.is_dir() else []
    for _ in range(depth + 1):
        yield from level
        # Hundreds of subfolders are classes, not places to look for a dataset in.
        level = [sub for folder in level for sub in subfolders(folder)][:64]


def subfolders(folder: Path) -> list[Path]:
    return [path for path in entries(folder) if path.is_dir()]


def files_below(folder: Path) -> Iterator[Path]:
    """Yield all files under a folder in a fixed order, except hidden ones. Linked folders are not entered."""

    def refuse(error: OSError) -> None:
        raise FirststepError(f"cannot read the folder {error.filename} ({error.strerror})") from None

    for here, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(here, name)


def images_and_rest(folder: Path) -> tuple[list[str], list[str]]:
    """Return the image files below a folder, and the other files."""
    images: list[str] = []
    rest: list[str] = []
    for file in files_below(folder):
        (images if file.suffix.lower() in IMAGE_ENDINGS else rest).append(str(file))
    return images, rest


def all_or_none(*paths: Path) -> list[Path]:
    """Return these paths if all of them exist, else none."""
    return list(paths) if all(path.exists() for path in paths) else []


def split_folders(root: Path) -> dict[str, Path]:
    """Return the subfolders called train, val (or valid, validation) and test."""
    other_names = {"val": ("val", "valid", "validation")}
    found = {}
    for split in SPLITS:
        for name in other_names.get(split, (split,)):
            if (root / name).is_dir():
                found[split] = root / name
                break
    return found
