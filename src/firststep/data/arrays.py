"""A dataset of arrays in memory: images, signals, token ids, rows of a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from firststep.data.dataset import Dataset, Split
from firststep.data.preprocessing import Preprocessing
from firststep.data.task_source import TaskSource
from firststep.errors import FirststepError


def from_arrays(
    arrays: Any,
    labels: Sequence[Any] | np.ndarray,
    splits: Mapping[str, Sequence[Any]],
    *,
    targets: Any = None,
    name: str = "arrays",
) -> Dataset:
    """Return a dataset of samples in memory, for :class:`Episodes`, ``train`` and ``evaluate``.

    With ``targets`` every label names a small problem of its own, such as one patient or one machine: a task
    is drawn from the samples of one problem, and its targets are numbers.

    Args:
        arrays: samples, [n, ...]. uint8 [n, size, size, 1 or 3] are images: they are normalised like images
            from files, and ``train(config, data=...)`` takes them with every backbone. Samples of other
            dtypes reach the network as float32 (floating point) or int64 (integers).
        labels: class of each sample, a number or a name.
        splits: classes of each split, such as ``{"train": [0, 1, 2], "test": [3, 4]}``. A few-shot learner
            is tested on classes that it was not trained on, so no class may be in two splits. Samples of
            other classes are left out.
        targets: numbers [n, ...], one entry per sample, for regression; the result is a :class:`TaskSource`.
        name: name of the dataset. The draws of episodes depend on it.

    Examples:
        >>> from firststep.data import from_arrays
        >>> signals = np.random.default_rng(0).normal(size=(60, 32)).astype(np.float32)
        >>> kinds = np.repeat(["a", "b", "c", "d", "e", "f"], 10)
        >>> splits = {"train": ["a", "b"], "val": ["c", "d"], "test": ["e", "f"]}
        >>> own = from_arrays(signals, kinds, splits)
        >>> Episodes(own.split("test"), ways=2, shots=1, queries=2)[0].support_x.shape
        (2, 32)
        >>> problems = from_arrays(signals, kinds, splits, targets=signals.mean(1, keepdims=True))
        >>> problems.tasks("train", shots=4, queries=6)[0].query_y.shape
        (6, 1)
    """
    samples = np.asarray(arrays)
    names = [str(label) for label in (labels.tolist() if isinstance(labels, np.ndarray) else labels)]
    samples, preprocessing = _checked(samples, len(names))
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(names):
        rows.setdefault(label, []).append(row)
    taken: dict[str, str] = {}
    found: dict[str, Split] = {}
    for split, labels_of_split in splits.items():
        classes = [str(label) for label in labels_of_split]
        for label in classes:
            if label not in rows:
                raise FirststepError(f"`splits`: no sample of {split} has the label {label!r}")
            if taken.setdefault(label, split) != split or classes.count(label) > 1:
                raise FirststepError(f"`splits` has the class {label!r} twice ({taken[label]}, {split})")
        chosen = samples[[row for label in classes for row in rows[label]]]
        counts = [len(rows[label]) for label in classes]
        found[split] = Split(name, split, classes, counts, chosen, preprocessing)
    if not found:
        raise FirststepError("`splits` is empty; it says which classes are train, val and test")
    if targets is None:
        return _ArrayDataset(name, found, preprocessing)
    order = {split: [row for label in part.classes for row in rows[label]] for split, part in found.items()}
    return _problems(name, found, _checked_targets(targets, len(names)), order)


def _problems(
    name: str, splits: dict[str, Split], targets: np.ndarray, order: dict[str, list[int]]
) -> TaskSource:
    """Return the source of tasks that are each drawn from the samples of one label."""
    numbers = {split: targets[order[split]] for split in splits}

    def make(generator: np.random.Generator, split: str, shots: int, queries: int) -> tuple[np.ndarray, ...]:
        part = splits[split]
        chosen = int(generator.integers(len(part.classes)))
        if part.counts[chosen] < shots + queries:
            raise FirststepError(
                f"{name} {split}: {part.classes[chosen]!r} has {part.counts[chosen]} samples, but {shots} "
                f"shots + {queries} queries need {shots + queries}"
            )
        rows = part.starts()[chosen] + generator.permutation(part.counts[chosen])[: shots + queries]
        x, y = part.inputs(rows), numbers[split][rows]
        return x[:shots], y[:shots], x[shots:], y[shots:]

    return TaskSource(name, make, tuple(splits))


def _checked_targets(targets: Any, samples: int) -> np.ndarray:
    array = np.asarray(targets)
    if array.ndim < 1 or len(array) != samples or array.dtype.kind not in "fiu":
        raise FirststepError(
            f"`targets` must be numbers, one entry for each of the {samples} samples, not "
            f"{list(array.shape)} of {array.dtype}"
        )
    array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise FirststepError("`targets` holds numbers that are not finite")
    return array[:, None] if array.ndim == 1 else array


def _checked(samples: np.ndarray, labels: int) -> tuple[np.ndarray, Preprocessing | None]:
    if samples.ndim < 1 or len(samples) != labels:
        count = len(samples) if samples.ndim else 0
        raise FirststepError(f"`arrays` has {count} samples, but there are {labels} labels")
    if samples.dtype == np.uint8:
        if samples.ndim != 4 or samples.shape[1] != samples.shape[2] or samples.shape[3] not in (1, 3):
            raise FirststepError(
                f"`arrays` of uint8 are images [n, size, size, 1 or 3], not {list(samples.shape)}; give "
                "others as float32 or int64"
            )
        return samples, Preprocessing(image_size=samples.shape[1], channels=samples.shape[3])
    if samples.dtype.kind == "f":
        if not np.isfinite(samples).all():
            raise FirststepError("`arrays` holds numbers that are not finite")
        return samples.astype(np.float32), None
    if samples.dtype.kind in "iu":
        return samples.astype(np.int64), None
    raise FirststepError(
        f"`arrays` must hold numbers in arrays of one shape, not {samples.dtype}; pad texts to one length"
    )


class _ArrayDataset(Dataset):
    def __init__(self, name: str, splits: dict[str, Split], preprocessing: Preprocessing | None) -> None:
        super().__init__(name, _fingerprint(name, splits, preprocessing), preprocessing, splits)
        self._splits = splits

    def _open(self, split: str) -> Split:
        return self._splits[split]


def _fingerprint(name: str, splits: dict[str, Split], preprocessing: Preprocessing | None) -> str:
    """Return a hash that changes whenever a number, a class name, a split or the preprocessing does."""
    digest = hashlib.sha256()
    about = None if preprocessing is None else preprocessing.describe()
    digest.update(json.dumps([name, about]).encode())
    for split in splits.values():
        form = [split.name, split.classes, split.counts, str(split.images.dtype), split.images.shape]
        digest.update(json.dumps(form).encode())
        digest.update(np.ascontiguousarray(split.images).tobytes())
    return digest.hexdigest()[:16]
