"""The user's own images: train/, val/ and test/ with class folders, or class folders to be split."""

from __future__ import annotations

from pathlib import Path

from firststep.data.layouts.class_folders import read_classes
from firststep.data.layouts.layout import IMAGE_ENDINGS, Layout, split_folders, subfolders
from firststep.data.regular_files import entries
from firststep.data.source import UNSPLIT, Source, collect


def _split_parts(root: Path) -> list[Path]:
    folders = split_folders(root)
    # A class may be called "train" or "test": then it has images directly inside.
    return list(folders.values()) if "train" in folders and all(map(subfolders, folders.values())) else []


def _class_parts(root: Path) -> list[Path]:
    return [root] if any(map(_is_class, subfolders(root))) else []


def _is_class(folder: Path) -> bool:
    """Images directly inside; otherwise its subfolders may be the classes."""
    return any(path.suffix.lower() in IMAGE_ENDINGS for path in entries(folder))


def _read_splits(root: Path) -> Source:
    splits, odd = {}, []
    for split, folder in split_folders(root).items():
        pairs, rest = read_classes([folder])
        splits[split] = collect([pair for pair in pairs if len(pair[1])])
        odd += rest
    return Source(f"class folders in {', '.join(splits)}", splits, odd=tuple(odd))


def _read_classes(root: Path) -> Source:
    pairs, odd = read_classes([root])
    classes = collect([pair for pair in pairs if len(pair[1])])
    return Source("class folders", {UNSPLIT: classes}, odd=tuple(odd))


LAYOUTS = (
    Layout("{train,val,test}/<class>/ with images", _split_parts, _read_splits),
    Layout("<class>/ with images", _class_parts, _read_classes),
)
