"""Caltech-UCSD Birds: images/001.Name/*.jpg, or the same classes under train/ and test/."""

from __future__ import annotations

import re
from pathlib import Path

from firststep.data.layouts.class_folders import read_classes
from firststep.data.layouts.layout import Layout, split_folders, subfolders
from firststep.data.official_splits import cub_split
from firststep.data.source import SPLITS, ClassImages, Source, collect

CLASS = re.compile(r"(\d{3})\..+")


def _holds_birds(folder: Path) -> bool:
    return folder.is_dir() and any(CLASS.fullmatch(sub.name) for sub in subfolders(folder))


def _images(root: Path) -> list[Path]:
    return [root / "images"] if _holds_birds(root / "images") else []


def _train_and_test(root: Path) -> list[Path]:
    return [folder for folder in split_folders(root).values() if _holds_birds(folder)]


def _read(folders: list[Path], layout: str) -> Source:
    pairs, odd = read_classes(folders)
    splits: dict[str, list[tuple[str, ClassImages]]] = {split: [] for split in SPLITS}
    extra = []
    for name, images in pairs:
        number = CLASS.fullmatch(name)
        if number and 1 <= int(number[1]) <= 200:
            splits[cub_split(int(number[1]))].append((name, images))
        else:
            extra.append(name)
    notes = [f"not bird classes, left out: {', '.join(sorted(extra))}"] if extra else []
    return Source(layout, {s: collect(c) for s, c in splits.items()}, odd=tuple(odd), notes=tuple(notes))


LAYOUTS = (
    Layout(
        "CUB_200_2011/images/001.Name/*.jpg (or its .tgz)",
        _images,
        lambda root: _read(_images(root), "images/ of CUB_200_2011"),
    ),
    Layout(
        "{train,test}/001.Name/*.jpg",
        _train_and_test,
        lambda root: _read(_train_and_test(root), "class folders in train/ and test/, merged"),
    ),
)
