"""Folders of class folders: the most common layout of any dataset."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from firststep.data.layouts.layout import images_and_rest, subfolders
from firststep.data.regular_files import entries
from firststep.data.source import ClassImages, FileImages


def read_classes(folders: Iterable[Path]) -> tuple[list[tuple[str, ClassImages]], list[str]]:
    """(name, images) of every class folder, and the files that are no images.

    A class that lies in several of the folders, as CIFAR's train and test, is merged.
    """
    files: dict[str, list[str]] = {}
    odd: list[str] = []
    for folder in folders:
        odd += [str(path) for path in entries(folder) if not path.is_dir()]
        for class_folder in subfolders(folder):
            images, rest = images_and_rest(class_folder)
            files.setdefault(class_folder.name, []).extend(images)
            odd += rest
    return [(name, FileImages(paths)) for name, paths in files.items()], odd


def holds_classes(folder: Path, known: frozenset[str]) -> bool:
    """Whether a folder has subfolders with names of known classes.

    One is not enough: "train" is a class of CIFAR-100.
    """
    return folder.is_dir() and sum(sub.name in known for sub in subfolders(folder)) >= 2


def by_official_split(
    pairs: list[tuple[str, ClassImages]], official: dict[str, list[str]]
) -> tuple[dict[str, list[tuple[str, ClassImages]]], list[str]]:
    """Classes sorted into the official splits, and the names that are in none."""
    split_of = {name: split for split, names in official.items() for name in names}
    splits: dict[str, list[tuple[str, ClassImages]]] = {split: [] for split in official}
    extra = []
    for name, images in pairs:
        if name in split_of:
            splits[split_of[name]].append((name, images))
        else:
            extra.append(name)
    return splits, extra
