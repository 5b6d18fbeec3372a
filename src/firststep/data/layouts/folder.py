"""Anybody's pictures: train/, val/ and test/ with class folders, or class folders to be split."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from firststep.data.draws import Draws
from firststep.data.layouts.classes import read_classes
from firststep.data.layouts.layout import PICTURE_ENDINGS, Layout, split_folders, subfolders
from firststep.data.pictures import Pictures
from firststep.data.source import SPLITS, Source, collect

ALL = "all"
"""The one split of a source that has yet to be split."""


def _split_parts(root: Path) -> list[Path]:
    folders = split_folders(root)
    # A class may be called "train" or "test": then it has pictures directly inside.
    return list(folders.values()) if "train" in folders and all(map(subfolders, folders.values())) else []


def _class_parts(root: Path) -> list[Path]:
    return [root] if any(map(_is_class, subfolders(root))) else []


def _is_class(folder: Path) -> bool:
    """Pictures directly inside; otherwise its subfolders may be the classes."""
    return any(path.suffix.lower() in PICTURE_ENDINGS for path in folder.iterdir())


def _read_splits(root: Path) -> Source:
    splits, odd = {}, []
    for split, folder in split_folders(root).items():
        pairs, rest = read_classes([folder])
        splits[split] = collect([pair for pair in pairs if len(pair[1])])
        odd += rest
    return Source(f"class folders in {', '.join(splits)}", splits, odd=tuple(odd))


def _read_classes(root: Path) -> Source:
    pairs, odd = read_classes([root])
    return Source("class folders", {ALL: collect([pair for pair in pairs if len(pair[1])])}, odd=tuple(odd))


def with_seeded_split(source: Source, seed: int) -> Source:
    """64 % of the classes train, 16 % validate, 20 % test; which ones depends on the seed alone."""
    if ALL not in source.splits:
        return source
    classes = source.splits[ALL]
    names = list(classes)
    shuffled = [names[i] for i in Draws("folder split", seed).distinct(len(names), len(names))]
    test = round(0.2 * len(names))
    val = round(0.16 * len(names))
    chosen = {"test": shuffled[:test], "val": shuffled[test : test + val], "train": shuffled[test + val :]}
    splits: dict[str, dict[str, Pictures]] = {
        split: {name: classes[name] for name in sorted(chosen[split])} for split in SPLITS
    }
    return replace(source, splits=splits, notes=(*source.notes, f"split by class with seed {seed}"))


LAYOUTS = (
    Layout("{train,val,test}/<class>/ with pictures", _split_parts, _read_splits),
    Layout("<class>/ with pictures", _class_parts, _read_classes),
)
