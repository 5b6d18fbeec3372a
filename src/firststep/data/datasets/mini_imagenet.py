"""miniImageNet: two families of pickles, class folders, or flat images with csv lists."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from firststep.data.dataset_info import DatasetInfo, PublishedFile, register_dataset
from firststep.data.layouts.class_folders import holds_classes, read_classes
from firststep.data.layouts.csv_list import read_columns
from firststep.data.layouts.labelled_arrays import check_images, load_dictionary, read_labelled
from firststep.data.layouts.layout import Layout, all_or_none, split_folders
from firststep.data.official_splits import OfficialSplits, shipped_split
from firststep.data.pickled_values import as_array, as_name, as_whole_numbers
from firststep.data.regular_files import entries, is_regular
from firststep.data.source import SPLITS, ArrayImages, ClassImages, FileImages, Source, collect
from firststep.errors import FirststepError

CATEGORY_SPLIT = {
    "train": "miniImageNet_category_split_train_phase_train.pickle",
    "val": "miniImageNet_category_split_val.pickle",
    "test": "miniImageNet_category_split_test.pickle",
}


@cache
def _official() -> OfficialSplits:
    return OfficialSplits(shipped_split("mini_imagenet"), images_per_class=600)


def _cache_files(root: Path) -> dict[str, Path]:
    files = {split: root / f"mini-imagenet-cache-{split}.pkl" for split in SPLITS}
    if not files["val"].exists():
        files["val"] = root / "mini-imagenet-cache-validation.pkl"
    return files


def _read_cache(root: Path) -> Source:
    """Read ``image_data``, the array of all images, and ``class_dict``, the rows of each class."""
    splits = {}
    for split, path in _cache_files(root).items():
        content = load_dictionary(path, "image_data", "class_dict")
        array = as_array(content["image_data"], path)
        check_images(array, len(array), path)
        pairs: list[tuple[str, ClassImages]] = []
        if not isinstance(content["class_dict"], dict):
            raise FirststepError(f"{path}: class_dict is not a dictionary")
        for key, numbers in content["class_dict"].items():
            name, rows = as_name(key, path), as_whole_numbers(numbers, path).tolist()
            for row in rows:
                if not 0 <= row < len(array):
                    raise FirststepError(f"{path}: class {name} has image {row} of {len(array)}")
            pairs.append((name, ArrayImages(array, rows, str(path))))
        splits[split] = collect(pairs)
    return Source("mini-imagenet-cache-*.pkl, one per split", splits)


def _read_folders(root: Path) -> Source:
    splits, ignored = {}, []
    for split, folder in split_folders(root).items():
        pairs, rest = read_classes([folder])
        splits[split] = collect(pairs)
        ignored += rest
    return Source("class folders in train/, val/ and test/", splits, ignored=tuple(ignored))


def _csv_files(root: Path) -> dict[str, Path]:
    return {split: root / f"{split}.csv" for split in SPLITS}


def _read_csv(root: Path) -> Source:
    splits, notes = {}, []
    listed: set[str] = set()
    for split, path in _csv_files(root).items():
        files: dict[str, list[str]] = {}
        missing = []
        for filename, label in read_columns(path, "filename", "label"):
            image = root / "images" / filename
            if image.parent != root / "images" or ".." in filename:
                raise FirststepError(f"{path}: {filename!r} is not a file name")
            if not is_regular(image):
                missing.append(filename)
                continue
            listed.add(filename)
            files.setdefault(label, []).append(str(image))
        if missing:
            notes.append(
                f"{path.name} lists {len(missing)} files that images/ does not have, first {missing[0]}"
            )
        splits[split] = collect([(name, FileImages(sorted(paths))) for name, paths in files.items()])
    ignored = [str(path) for path in entries(root / "images") if path.name not in listed]
    return Source(
        "flat images/ with train.csv, val.csv, test.csv", splits, ignored=tuple(ignored), notes=tuple(notes)
    )


def _folder_parts(root: Path) -> list[Path]:
    known = frozenset(name for names in _official().classes.values() for name in names)
    folders = split_folders(root)
    if len(folders) < len(SPLITS):
        return []
    return list(folders.values()) if any(holds_classes(f, known) for f in folders.values()) else []


register_dataset(
    DatasetInfo(
        name="mini-imagenet",
        about="100 ImageNet classes, 600 a class (split of Ravi and Larochelle 2017)",
        splits="64 / 16 / 20",
        home="https://image-net.org (ask for ILSVRC 2012), or a copy that others made from it",
        licence="ImageNet: non-commercial research",
        image_size=84,
        files=(PublishedFile(name="mini-imagenet.tar.gz", md5="b38f1eb4251fb9459ecc8e7febf9b2eb"),),
        layouts=(
            Layout(
                "mini-imagenet-cache-{train,val,test}.pkl",
                lambda root: all_or_none(*_cache_files(root).values()),
                _read_cache,
            ),
            Layout(
                "miniImageNet_category_split_{train_phase_train,val,test}.pickle",
                lambda root: all_or_none(*(root / name for name in CATEGORY_SPLIT.values())),
                lambda root: read_labelled(
                    {split: root / name for split, name in CATEGORY_SPLIT.items()},
                    "miniImageNet_category_split_*.pickle, one per split",
                ),
            ),
            Layout(
                "images/*.jpg with train.csv, val.csv, test.csv",
                lambda root: all_or_none(root / "images", *_csv_files(root).values()),
                _read_csv,
            ),
            Layout("{train,val,test}/<wnid>/*.jpg", _folder_parts, _read_folders),
        ),
        official=_official,
    )
)
