"""CIFAR-100 as CIFAR-FS or FC100: the original pickles, class folders, or one pickle a split."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from firststep.data.layouts.class_folders import by_official_split, holds_classes, read_classes
from firststep.data.layouts.labelled_arrays import load_dictionary, read_labelled, rows_of_labels
from firststep.data.layouts.layout import Layout, all_or_none, split_folders
from firststep.data.official_splits import OfficialSplits
from firststep.data.source import SPLITS, ArrayImages, ClassImages, Source, collect
from firststep.data.unpickle import as_array, as_names, as_whole_numbers
from firststep.errors import FirststepError


def layouts(official: Callable[[], OfficialSplits], prefix: str) -> tuple[Layout, ...]:
    """The layouts of one of the two datasets; ``prefix`` begins its pickles' names."""
    classes = official().classes
    known = frozenset(name for names in classes.values() for name in names)

    def split_pickles(root: Path) -> list[Path]:
        return all_or_none(*(root / f"{prefix}_{split}.pickle" for split in SPLITS))

    def read_split_pickles(root: Path) -> Source:
        return read_labelled(
            {split: root / f"{prefix}_{split}.pickle" for split in SPLITS}, f"{prefix}_*.pickle, one a split"
        )

    def data_folder(root: Path) -> list[Path]:
        return [root / "data"] if holds_classes(root / "data", known) else []

    def train_and_test(root: Path) -> list[Path]:
        return [folder for folder in split_folders(root).values() if holds_classes(folder, known)]

    return (
        Layout(
            "train, test and meta of cifar-100-python (or its .tar.gz)",
            lambda root: all_or_none(root / "train", root / "test", root / "meta"),
            lambda root: _arranged(_original(root), classes, "CIFAR-100's own train, test and meta, merged"),
        ),
        Layout(
            f"{prefix}_train.pickle, {prefix}_val.pickle, {prefix}_test.pickle",
            split_pickles,
            read_split_pickles,
        ),
        Layout(
            "data/<class>/*.png",
            data_folder,
            lambda root: _arranged(read_classes([root / "data"]), classes, "class folders in data/"),
        ),
        Layout(
            "{train,test}/<class>/*.png",
            train_and_test,
            lambda root: _arranged(
                read_classes(train_and_test(root)), classes, "class folders in train/, test/, merged"
            ),
        ),
    )


def _arranged(
    found: tuple[list[tuple[str, ClassImages]], list[str]], classes: dict[str, list[str]], layout: str
) -> Source:
    pairs, odd = found
    splits, extra = by_official_split(pairs, classes)
    notes = [f"not classes of CIFAR-100, left out: {', '.join(sorted(extra))}"] if extra else []
    return Source(layout, {s: collect(c) for s, c in splits.items()}, odd=tuple(odd), notes=tuple(notes))


def _original(root: Path) -> tuple[list[tuple[str, ClassImages]], list[str]]:
    """Krizhevsky's pickles: rows of 3072 bytes, red plane first; train's 500 and test's 100 merged."""
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
    # 60,000 images of 3 KB: the only source that is small enough to be joined in memory.
    images = np.concatenate(arrays)
    by_label = rows_of_labels(labels, root / "train")
    for label in by_label:
        if not 0 <= label < len(names):
            raise FirststepError(f"{root / 'meta'} names {len(names)} classes, but label {label} is used")
    return [(names[i], ArrayImages(images, rows, "cifar-100-python")) for i, rows in by_label.items()], []
