"""CIFAR-FS and FC100, two splits of CIFAR-100: original pickles, class folders, or one pickle per split."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from firststep.data.dataset_info import DatasetInfo, PublishedFile, register_dataset
from firststep.data.layouts.class_folders import holds_classes, official_source, read_classes
from firststep.data.layouts.labelled_arrays import load_dictionary, read_labelled, rows_of_labels
from firststep.data.layouts.layout import Layout, all_or_none, split_folders
from firststep.data.official_splits import OfficialSplits, shipped_split
from firststep.data.pickled_values import as_array, as_names, as_whole_numbers
from firststep.data.source import SPLITS, ArrayImages, ClassImages, Source
from firststep.errors import FirststepError


def _layouts(official: Callable[[], OfficialSplits], prefix: str) -> tuple[Layout, ...]:
    """Return the layouts of one of the two datasets. ``prefix`` begins the names of its pickles."""
    known = frozenset(name for names in official().classes.values() for name in names)
    own = "CIFAR-100's own train, test and meta, merged"
    data = "class folders in data/"
    merged = "class folders in train/, test/, merged"

    def split_pickles(root: Path) -> list[Path]:
        return all_or_none(*(root / f"{prefix}_{split}.pickle" for split in SPLITS))

    def read_split_pickles(root: Path) -> Source:
        return read_labelled(
            {split: root / f"{prefix}_{split}.pickle" for split in SPLITS},
            f"{prefix}_*.pickle, one per split",
        )

    def data_folder(root: Path) -> list[Path]:
        return [root / "data"] if holds_classes(root / "data", known) else []

    def train_and_test(root: Path) -> list[Path]:
        return [folder for folder in split_folders(root).values() if holds_classes(folder, known)]

    return (
        Layout(
            "train, test and meta of cifar-100-python (or its .tar.gz)",
            lambda root: all_or_none(root / "train", root / "test", root / "meta"),
            lambda root: official_source(own, _original(root), [], official()),
        ),
        Layout(
            f"{prefix}_train.pickle, {prefix}_val.pickle, {prefix}_test.pickle",
            split_pickles,
            read_split_pickles,
        ),
        Layout(
            "data/<class>/*.png",
            data_folder,
            lambda root: official_source(data, *read_classes([root / "data"]), official()),
        ),
        Layout(
            "{train,test}/<class>/*.png",
            train_and_test,
            lambda root: official_source(merged, *read_classes(train_and_test(root)), official()),
        ),
    )


def _original(root: Path) -> list[tuple[str, ClassImages]]:
    """Read Krizhevsky's pickles, rows of 3072 bytes, red plane first, and merge train and test."""
    meta = load_dictionary(root / "meta", "fine_label_names")
    names = as_names(meta["fine_label_names"], root / "meta")
    arrays: list[np.ndarray] = []
    labels: list[int] = []
    for half in ("train", "test"):
        content = load_dictionary(root / half, "data", "fine_labels")
        rows = as_array(content["data"], root / half)
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != 3 * 32 * 32:
            raise FirststepError(
                f"{root / half}: data is {rows.dtype} {rows.shape}, expected uint8 [N, 3072]"
            )
        half_labels = as_whole_numbers(content["fine_labels"], root / half).tolist()
        if len(rows) != len(half_labels):
            raise FirststepError(f"{root / half}: {len(rows)} images but {len(half_labels)} labels")
        arrays.append(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        labels += half_labels
    # 60,000 images of 3 KB are small enough to be joined in memory.
    images = np.concatenate(arrays)
    by_label = rows_of_labels(labels, root / "train")
    for label in by_label:
        if not 0 <= label < len(names):
            raise FirststepError(f"{root / 'meta'} names {len(names)} classes, but label {label} is used")
    return [(names[i], ArrayImages(images, rows, "cifar-100-python")) for i, rows in by_label.items()]


@cache
def _cifar_fs() -> OfficialSplits:
    return OfficialSplits(shipped_split("cifar_fs"), images_per_class=600)


@cache
def _fc100() -> OfficialSplits:
    superclass = shipped_split("cifar100_superclasses")
    return OfficialSplits(shipped_split("fc100"), images_per_class=600, superclass=superclass)


_CIFAR_100 = PublishedFile(
    name="cifar-100-python.tar.gz",
    md5="eb9058c3a382ffc7106e4002c42a8d85",
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
)

register_dataset(
    DatasetInfo(
        name="cifar-fs",
        about="CIFAR-100, 600 a class, split at random (Bertinetto et al. 2019)",
        splits="64 / 16 / 20",
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        licence="not stated; research use",
        image_size=32,
        files=(_CIFAR_100,),
        layouts=_layouts(_cifar_fs, "CIFAR_FS"),
        official=_cifar_fs,
    )
)
register_dataset(
    DatasetInfo(
        name="fc100",
        about="CIFAR-100, 600 a class, split by superclass (Oreshkin et al. 2018)",
        splits="60 / 20 / 20 in 12 / 4 / 4 superclasses",
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        licence="not stated; research use",
        image_size=32,
        files=(_CIFAR_100,),
        layouts=_layouts(_fc100, "FC100"),
        official=_fc100,
    )
)
