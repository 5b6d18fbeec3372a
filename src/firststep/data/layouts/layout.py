"""A layout is how a dataset lies on disk: how to recognise it, and how to read it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from firststep.data.regular_files import entries
from firststep.data.source import SPLITS, Source
from firststep.errors import FirststepError

DEPTH = 2
"""How many folders below the given path are searched for a dataset."""

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")


@dataclass(frozen=True)
class Layout:
    """One form of a dataset on disk; any two functions of a folder will do.

    Examples:
        >>> from firststep.data import ArrayImages, Layout, Source
        >>> def read(root):
        ...     pixels = np.load(root / "sprites.npy", mmap_mode="r")
        ...     images = ArrayImages(pixels, range(len(pixels)), "sprites.npy")
        ...     return Source("sprites.npy", {"all": {"all sprites": images}})
        >>> layout = Layout("sprites.npy", lambda root: list(root.glob("sprites.npy")), read)
    """

    what: str
    """one line, for people: the files or folders looked for"""
    parts: Callable[[Path], Sequence[Path]]
    """the files and folders under a root that make up the dataset; none if it is not this layout"""
    read: Callable[[Path], Source]
    """the dataset under that root"""


@dataclass(frozen=True)
class Located:
    """Where a dataset was found."""

    layout: Layout | None
    """None where it is still packed: the parts are archives"""
    root: Path
    parts: tuple[Path, ...]


def locate(path: Path, layouts: Sequence[Layout]) -> Located | None:
    """The first layout found at the path, in the folders below it, or that the path is a part of."""
    for root in _roots(path):
        for layout in layouts:
            if parts := layout.parts(root):
                return Located(layout, root, tuple(parts))
    # The path may be one piece of a dataset, say its train folder: then the rest lies beside it.
    for layout in layouts:
        parts = layout.parts(path.parent)
        if path in parts:
            return Located(layout, path.parent, tuple(parts))
    return None


def _roots(path: Path, depth: int = DEPTH) -> Iterator[Path]:
    """The folder and its subfolders, level by level, so that the nearest match wins."""
    level = [path] if path.is_dir() else []
    for _ in range(depth + 1):
        yield from level
        # Hundreds of subfolders are classes, not places to look for a dataset in.
        level = [sub for folder in level for sub in subfolders(folder)][:64]


def subfolders(folder: Path) -> list[Path]:
    return [path for path in entries(folder) if path.is_dir()]


def files_below(folder: Path) -> Iterator[Path]:
    """All files under a folder in a fixed order, hidden ones left out; linked folders are not entered."""

    def refuse(error: OSError) -> None:
        raise FirststepError(f"cannot read the folder {error.filename} ({error.strerror})") from None

    for here, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(here, name)


def images_and_rest(folder: Path) -> tuple[list[str], list[str]]:
    """The image files below a folder, and the files that are none."""
    images: list[str] = []
    rest: list[str] = []
    for file in files_below(folder):
        (images if file.suffix.lower() in IMAGE_ENDINGS else rest).append(str(file))
    return images, rest


def existing(*paths: Path) -> list[Path]:
    return [path for path in paths if path.exists()]


def all_or_none(*paths: Path) -> list[Path]:
    """These paths if every one exists."""
    return list(paths) if all(path.exists() for path in paths) else []


def split_folders(root: Path) -> dict[str, Path]:
    """The subfolders that are called train, val (or valid, validation) and test."""
    other_names = {"val": ("val", "valid", "validation")}
    found = {}
    for split in SPLITS:
        for name in other_names.get(split, (split,)):
            if (root / name).is_dir():
                found[split] = root / name
                break
    return found
