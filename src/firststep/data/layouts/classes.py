"""Folders of class folders: the layout that most people have, whatever the dataset."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from firststep.data.layouts.layout import pictures_and_rest, subfolders
from firststep.data.pictures import FilePictures, Pictures


def read_classes(folders: Iterable[Path]) -> tuple[list[tuple[str, Pictures]], list[str]]:
    """(name, pictures) of every class folder, and the files that are no pictures.

    A class that lies in several of the folders, as CIFAR's train and test, is merged.
    """
    files: dict[str, list[str]] = {}
    odd: list[str] = []
    for folder in folders:
        odd += [str(path) for path in sorted(folder.iterdir()) if path.is_file() and path.name[0] != "."]
        for class_folder in subfolders(folder):
            pictures, rest = pictures_and_rest(class_folder)
            files.setdefault(class_folder.name, []).extend(pictures)
            odd += rest
    return [(name, FilePictures(paths)) for name, paths in files.items()], odd


def holds_classes(folder: Path, known: frozenset[str]) -> bool:
    """Whether a folder has subfolders with names of known classes.

    One is not enough: "train" is a class of CIFAR-100.
    """
    return folder.is_dir() and sum(sub.name in known for sub in subfolders(folder)) >= 2


def by_official_split(
    pairs: list[tuple[str, Pictures]], official: dict[str, list[str]]
) -> tuple[dict[str, list[tuple[str, Pictures]]], list[str]]:
    """Classes sorted into the official splits, and the names that are in none."""
    split_of = {name: split for split, names in official.items() for name in names}
    splits: dict[str, list[tuple[str, Pictures]]] = {split: [] for split in official}
    extra = []
    for name, pictures in pairs:
        if name in split_of:
            splits[split_of[name]].append((name, pictures))
        else:
            extra.append(name)
    return splits, extra
