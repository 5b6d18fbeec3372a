"""Images of the user: class folders in train/, val/ and test/, or class folders to be split by a seed."""

from __future__ import annotations

from pathlib import Path

from firststep.data.dataset_info import DatasetInfo, register_dataset
from firststep.data.layouts.class_folders import read_classes
from firststep.data.layouts.layout import IMAGE_ENDINGS, Layout, split_folders, subfolders
from firststep.data.regular_files import entries
from firststep.data.source import UNSPLIT, Source, collect


def _split_parts(root: Path) -> list[Path]:
    folders = split_folders(root)
    # A class may be called "train" or "test"; then it has images directly inside.
    return list(folders.values()) if "train" in folders and all(map(subfolders, folders.values())) else []


def _class_parts(root: Path) -> list[Path]:
    return [root] if any(map(_is_class, subfolders(root))) else []


def _is_class(folder: Path) -> bool:
    """Return whether images are directly inside; otherwise the subfolders may be classes."""
    return any(path.suffix.lower() in IMAGE_ENDINGS for path in entries(folder))


def _read_splits(root: Path) -> Source:
    splits, ignored = {}, []
    for split, folder in split_folders(root).items():
        pairs, rest = read_classes([folder])
        splits[split] = collect([pair for pair in pairs if len(pair[1])])
        ignored += rest
    return Source(f"class folders in {', '.join(splits)}", splits, ignored=tuple(ignored))


def _read_classes(root: Path) -> Source:
    pairs, ignored = read_classes([root])
    classes = collect([pair for pair in pairs if len(pair[1])])
    return Source("class folders", {UNSPLIT: classes}, ignored=tuple(ignored))


register_dataset(
    DatasetInfo(
        name="folder",
        about="your own images: one folder a class",
        splits="yours, or 64 / 16 / 20 % of the classes drawn from a seed",
        home="your disk",
        licence="yours",
        image_size=84,
        layouts=(
            Layout("{train,val,test}/<class>/ with images", _split_parts, _read_splits),
            Layout("<class>/ with images", _class_parts, _read_classes),
        ),
        options=("seed", "channels"),
    )
)
