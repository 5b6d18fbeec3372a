"""Folders with one subfolder per class, the most common layout."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from firststep.data.layouts.layout import images_and_rest, subfolders
from firststep.data.official_splits import OfficialSplits, shortened
from firststep.data.regular_files import entries
from firststep.data.source import ClassImages, FileImages, Source, collect


def read_classes(folders: Iterable[Path]) -> tuple[list[tuple[str, ClassImages]], list[str]]:
    """Return (name, images) of each class folder, and the files that are not images.

    A class that is in several of the folders, such as train and test of CIFAR, is merged.
    """
    files: dict[str, list[str]] = {}
    ignored: list[str] = []
    for folder in folders:
        ignored += [str(path) for path in entries(folder) if not path.is_dir()]
        for class_folder in subfolders(folder):
            images, rest = images_and_rest(class_folder)
            files.setdefault(class_folder.name, []).extend(images)
            ignored += rest
    return [(name, FileImages(paths)) for name, paths in files.items()], ignored


def holds_classes(folder: Path, known: frozenset[str]) -> bool:
    """Return whether a folder has subfolders named after known classes.

    One is not enough: "train" is a class of CIFAR-100.
    """
    return folder.is_dir() and sum(sub.name in known for sub in subfolders(folder)) >= 2


def official_source(
    layout: str, pairs: list[tuple[str, ClassImages]], ignored: list[str], official: OfficialSplits
) -> Source:
    """Sort classes into their official splits. A note names those that are in none and are left out."""
    splits: dict[str, list[tuple[str, ClassImages]]] = {split: [] for split in official.classes}
    extra = []
    for name, images in pairs:
        split = official.split_of(name)
        if split is None:
            extra.append(name)
        else:
            splits[split].append((name, images))
    note = f"not in the official split, left out: {shortened(sorted(extra))}"
    return Source(
        layout,
        {split: collect(classes) for split, classes in splits.items()},
        ignored=tuple(ignored),
        notes=(note,) if extra else (),
    )
