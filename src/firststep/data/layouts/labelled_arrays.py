"""Pickles of one image array and a list of labels, as CIFAR-FS, FC100 and miniImageNet use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from firststep.data.pickled_values import as_array, as_name, as_whole_numbers, with_text_keys
from firststep.data.source import ArrayImages, ClassImages, Source, collect
from firststep.data.unpickle import load_pickle
from firststep.errors import FirststepError


def load_dictionary(path: Path, *needed: str) -> dict[str, Any]:
    content = with_text_keys(load_pickle(path), path)
    for key in needed:
        if key not in content:
            raise FirststepError(f"{path} has no {key!r}; it has {', '.join(sorted(content)) or 'nothing'}")
    return content


def rows_of_labels(labels: Any, path: Path) -> dict[int, list[int]]:
    """Return {label: rows of its images}."""
    numbers = as_whole_numbers(labels, path)
    if not numbers.size:
        return {}
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    return {int(label): rows.tolist() for label, rows in zip(found, np.split(order, starts[1:]), strict=True)}


def check_images(array: np.ndarray, count: int, path: Path) -> np.ndarray:
    """Return the images; refuse anything but uint8 [N, H, W, 1 or 3] with one image per label."""
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[-1] not in (1, 3) or 0 in array.shape[1:]:
        raise FirststepError(f"{path}: images are {array.dtype} {array.shape}, expected uint8 [N, H, W, 3]")
    if len(array) != count:
        raise FirststepError(f"{path}: {len(array)} images but {count} labels")
    return array


def read_labelled(files: dict[str, Path], layout: str) -> Source:
    """Read one pickle per split, with data, labels and perhaps catname2label."""
    splits: dict[str, dict[str, ClassImages]] = {}
    named = True
    for split, path in files.items():
        content = load_dictionary(path, "data", "labels")
        rows = rows_of_labels(content["labels"], path)
        images = check_images(as_array(content["data"], path), sum(map(len, rows.values())), path)
        names = content.get("catname2label")
        if isinstance(names, dict):
            numbers = as_whole_numbers(list(names.values()), path).tolist()
            name_of = {label: as_name(name, path) for name, label in zip(names, numbers, strict=True)}
        else:
            name_of, named = {}, False
        splits[split] = collect(
            [
                (
                    name_of.get(label, f"{split} label {label:03d}"),
                    ArrayImages(images, own, str(path)),
                )
                for label, own in rows.items()
            ]
        )
    notes = () if named else ("the files number the classes, so names cannot be checked, only their count",)
    return Source(layout, splits, notes=notes, named=named)
