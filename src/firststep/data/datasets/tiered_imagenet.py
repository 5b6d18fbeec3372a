"""tieredImageNet: pickles of PNGs, npz arrays, or ImageNet folders; 779,165 images, never all in memory."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from firststep.data.dataset_info import DatasetInfo, PublishedFile, register_dataset
from firststep.data.layouts.class_folders import holds_classes, official_source, read_classes
from firststep.data.layouts.labelled_arrays import check_images, load_dictionary, rows_of_labels
from firststep.data.layouts.layout import Layout, all_or_none, split_folders
from firststep.data.layouts.npz import array_in_npz
from firststep.data.official_splits import OfficialSplits, shipped_split
from firststep.data.pickled_values import as_names
from firststep.data.source import SPLITS, ArrayImages, ClassImages, EncodedImages, Source, collect
from firststep.data.unpickle import load_pickle
from firststep.errors import FirststepError


@cache
def _official() -> OfficialSplits:
    by_split = shipped_split("tiered_imagenet")
    return OfficialSplits(
        {split: list(classes) for split, classes in by_split.items()},
        images={"train": 448_695, "val": 124_261, "test": 206_209},
        superclass={wnid: above for classes in by_split.values() for wnid, above in classes.items()},
    )


@cache
def _wnids() -> frozenset[str]:
    return frozenset(wnid for wnids in _official().classes.values() for wnid in wnids)


def _labels(path: Path) -> tuple[dict[str, list[int]], bool]:
    """Return {class: rows of its images}, and whether the classes are named by their wnids."""
    content = load_dictionary(path, "label_specific")
    rows = rows_of_labels(content["label_specific"], path)
    split = path.name.split("_")[0]
    strings = content.get("label_specific_str")
    names = as_names(strings, path) if strings is not None else []
    # Published copies name the classes in words ("tench, Tinca tinca"), but only wnids can be checked.
    named = bool(names) and _wnids().issuperset(names)
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
        # OpenCV wrote these arrays, so the channels are BGR.
        splits[split] = collect(
            [(name, ArrayImages(images, rows, str(path), True)) for name, rows in classes.items()]
        )
        all_named &= named
    return _source("*_images.npz and *_labels.pkl", splits, all_named)


def _class_roots(root: Path) -> list[Path]:
    """Return the folders of wnids: train/, val/ and test/, or the root itself, as in ImageNet."""
    folders = [f for f in split_folders(root).values() if holds_classes(f, _wnids())]
    return folders or ([root] if holds_classes(root, _wnids()) else [])


def _read_folders(root: Path) -> Source:
    return official_source("ImageNet class folders", *read_classes(_class_roots(root)), _official())


def _per_split(*endings: str) -> Any:
    return lambda root: all_or_none(*(root / f"{split}{ending}" for split in SPLITS for ending in endings))


register_dataset(
    DatasetInfo(
        name="tiered-imagenet",
        about="608 ImageNet classes, 779,165 images, split by superclass (Ren et al. 2018)",
        splits="351 / 97 / 160 in 20 / 6 / 8 superclasses",
        home="https://github.com/renmengye/few-shot-ssl-public, or ILSVRC 2012 of https://image-net.org",
        licence="ImageNet: non-commercial research",
        image_size=84,
        files=(PublishedFile(name="tiered-imagenet.tar", md5="e07e811b9f29362d159a9edd0d838c62"),),
        layouts=(
            Layout(
                "{train,val,test}_images_png.pkl with *_labels.pkl",
                _per_split("_images_png.pkl", "_labels.pkl"),
                _read_png_pickles,
            ),
            Layout(
                "{train,val,test}_images.npz with *_labels.pkl",
                _per_split("_images.npz", "_labels.pkl"),
                _read_npz,
            ),
            Layout("ImageNet folders <wnid>/*.JPEG", _class_roots, _read_folders),
        ),
        official=_official,
    )
)
