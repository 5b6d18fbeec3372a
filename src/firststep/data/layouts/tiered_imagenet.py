"""tieredImageNet: PNG pickles, npz arrays, or folders of ImageNet. 779,165 images: never all in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from firststep.data import official_splits
from firststep.data.layouts.class_folders import by_official_split, holds_classes, read_classes
from firststep.data.layouts.labelled_arrays import check_images, load_dictionary, rows_of_labels
from firststep.data.layouts.layout import Layout, all_or_none, split_folders
from firststep.data.layouts.npz import array_in_npz
from firststep.data.source import SPLITS, ArrayImages, ClassImages, EncodedImages, Source, collect
from firststep.data.unpickle import as_names, load_pickle
from firststep.errors import FirststepError


def _known() -> dict[str, list[str]]:
    return official_splits.tiered_imagenet().classes


def _labels(path: Path) -> tuple[dict[str, list[int]], bool]:
    """{class: numbers of its images}, and whether the classes have their wnids as names."""
    content = load_dictionary(path, "label_specific")
    rows = rows_of_labels(content["label_specific"], path)
    split = path.name.split("_")[0]
    strings = content.get("label_specific_str")
    names = as_names(strings, path) if strings is not None else []
    # Published copies name the classes in words ("tench, Tinca tinca"); only wnids can be checked.
    known = {wnid for wnids in _known().values() for wnid in wnids}
    named = bool(names) and all(name in known for name in names)
    if len(set(names)) != len(names) or (rows and not 0 <= min(rows) <= max(rows) < len(names)):
        names = []
    return {names[i] if names else f"{split} label {i:03d}": numbers for i, numbers in rows.items()}, named


def _source(layout: str, splits: dict[str, dict[str, ClassImages]], named: bool) -> Source:
    notes = () if named else ("the files give no wnids, so class names cannot be checked, only their count",)
    return Source(layout, splits, notes=notes, named=named)


def _read_png_pickles(root: Path) -> Source:
    splits, all_named = {}, True
    for split in SPLITS:
        path = root / f"{split}_images_png.pkl"
        items = load_pickle(path)
        if not isinstance(items, list):
            raise FirststepError(f"{path}: expected a list of PNG images, found {type(items).__name__}")
        classes, named = _labels(root / f"{split}_labels.pkl")
        labels = sum(map(len, classes.values()))
        if labels != len(items):
            raise FirststepError(f"{path}: {len(items)} images but {labels} labels")
        splits[split] = collect(
            [(name, EncodedImages(items, rows, str(path))) for name, rows in classes.items()]
        )
        all_named &= named
    return _source("*_images_png.pkl and *_labels.pkl", splits, all_named)


def _read_npz(root: Path) -> Source:
    splits, all_named = {}, True
    for split in SPLITS:
        path = root / f"{split}_images.npz"
        classes, named = _labels(root / f"{split}_labels.pkl")
        images = check_images(array_in_npz(path, "images"), sum(map(len, classes.values())), path)
        # OpenCV made these arrays, so blue comes first.
        splits[split] = collect(
            [(name, ArrayImages(images, rows, str(path), True)) for name, rows in classes.items()]
        )
        all_named &= named
    return _source("*_images.npz and *_labels.pkl", splits, all_named)


def _class_roots(root: Path) -> list[Path]:
    """Folders of wnids: the root itself, as ImageNet comes, or train/, val/ and test/."""
    known = frozenset(wnid for wnids in _known().values() for wnid in wnids)
    folders = [f for f in split_folders(root).values() if holds_classes(f, known)]
    return folders or ([root] if holds_classes(root, known) else [])


def _read_folders(root: Path) -> Source:
    pairs, odd = read_classes(_class_roots(root))
    splits, extra = by_official_split(pairs, _known())
    notes = [f"{len(extra)} classes are not part of tieredImageNet and were left out"] if extra else []
    return Source(
        "ImageNet class folders",
        {s: collect(c) for s, c in splits.items()},
        odd=tuple(odd),
        notes=tuple(notes),
    )


def _per_split(*endings: str) -> Any:
    return lambda root: all_or_none(*(root / f"{split}{ending}" for split in SPLITS for ending in endings))


LAYOUTS = (
    Layout(
        "{train,val,test}_images_png.pkl with *_labels.pkl",
        _per_split("_images_png.pkl", "_labels.pkl"),
        _read_png_pickles,
    ),
    Layout(
        "{train,val,test}_images.npz with *_labels.pkl", _per_split("_images.npz", "_labels.pkl"), _read_npz
    ),
    Layout("ImageNet folders <wnid>/*.JPEG", _class_roots, _read_folders),
)
