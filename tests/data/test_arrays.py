"""Datasets of arrays in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firststep.data import Augmentation, Episodes, Preprocessing, from_arrays
from firststep.errors import FirststepError
from firststep.evaluation import EvaluationSettings
from firststep.training import load_trained, train
from runs import TINY

SPLITS = {"train": ["a", "b"], "test": ["c", "d"]}
LABELS = ["a", "b", "c", "d", "e"] * 3


def test_samples_reach_the_episodes_as_they_are() -> None:
    signals = np.arange(15 * 6, dtype=np.float64).reshape(15, 6)
    data = from_arrays(signals, LABELS, SPLITS)
    assert data.splits == ["train", "test"]
    split = data.split("test")
    assert (split.classes, split.counts) == (["c", "d"], [3, 3])
    episode = Episodes(split, ways=2, shots=1, queries=2)[0]
    assert episode.support_x.dtype == np.float32
    drawn = np.concatenate([episode.support_x, episode.query_x])
    own = [row for row, label in enumerate(LABELS) if label in SPLITS["test"]]
    assert sorted(drawn[:, 0]) == sorted(signals[own, 0])  # "e" is in no split
    by_label = {int(label): set() for label in episode.support_y}  # type: ignore[var-annotated]
    for value, label in zip(drawn[:, 0], [*episode.support_y, *episode.query_y], strict=True):
        by_label[int(label)].add(LABELS[int(value) // 6])
    assert all(len(classes) == 1 for classes in by_label.values())


def test_token_ids_stay_whole_numbers_and_images_are_normalised() -> None:
    ids = np.arange(15 * 4, dtype=np.int32).reshape(15, 4)
    assert (
        Episodes(from_arrays(ids, LABELS, SPLITS).split("train"), ways=2, queries=1, shots=2)[0].query_x.dtype
        == np.int64
    )
    images = np.random.default_rng(0).integers(0, 255, (15, 8, 8, 3), dtype=np.uint8)
    split = from_arrays(images, LABELS, SPLITS).split("train")
    rows = Episodes(split, ways=2, queries=1, shots=2).rows(0).query.ravel()
    found = Episodes(split, ways=2, queries=1, shots=2)[0].query_x
    np.testing.assert_array_equal(found, Preprocessing(image_size=8).normalise(split.images[rows]))


def test_the_fingerprint_is_that_of_the_numbers() -> None:
    signals = np.zeros((15, 6), dtype=np.float32)
    first = from_arrays(signals, LABELS, SPLITS).fingerprint
    assert from_arrays(signals.copy(), np.array(LABELS), SPLITS).fingerprint == first
    signals[2, 3] = 1e-7
    assert from_arrays(signals, LABELS, SPLITS).fingerprint != first


def test_images_are_trained_on_by_a_configuration(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (8 * 6, 16, 16, 1), dtype=np.uint8)
    labels = np.repeat(np.arange(8), 6)
    data = from_arrays(images, labels, {"train": range(3), "val": range(3, 5), "test": range(5, 8)})
    run = train(replace(TINY, ways=2, updates=1, validate_every=1), tmp_path / "run", data=data)
    trained = load_trained(run.folder)
    assert trained.preprocessing == Preprocessing(image_size=16, channels=1)
    assert (
        trained.evaluate(data, EvaluationSettings(episodes=2, steps=(1,))).data_fingerprint
        == data.fingerprint
    )
    signals = from_arrays(np.zeros((15, 6)), LABELS, SPLITS)
    with pytest.raises(FirststepError, match=r"holds arrays, not images: .* examples/signals.py"):
        train(TINY, tmp_path / "other", data=signals)
    with pytest.raises(FirststepError, match="holds arrays, not images"):
        Episodes(signals.split("train"), ways=2, shots=1, queries=1, augment=Augmentation())


@pytest.mark.parametrize(
    ("arrays", "labels", "splits", "says"),
    [
        (np.zeros((3, 2)), ["a", "b"], SPLITS, "`arrays` has 3 samples, but there are 2 labels"),
        (np.zeros((3, 2)), ["a", "b", "c"], SPLITS, "no sample of test has the label 'd'"),
        (np.zeros((3, 2)), ["a", "b", "c"], {"train": ["a"], "test": ["b", "a"]}, "the class 'a' twice"),
        (np.zeros((3, 2)), ["a", "b", "c"], {"train": ["a", "a"]}, "the class 'a' twice"),
        (np.zeros((3, 2)), ["a", "b", "c"], {}, "`splits` is empty"),
        (np.full((3, 2), np.nan), ["a", "b", "c"], {"train": ["a"]}, "not finite"),
        (np.zeros((3, 8, 9, 3), np.uint8), ["a", "b", "c"], {"train": ["a"]}, "uint8 are images"),
        (["x", "yy", "z"], ["a", "b", "c"], {"train": ["a"]}, "must hold numbers"),
        (1.0, [], {"train": ["a"]}, "`arrays` has 0 samples"),
    ],
)
def test_what_cannot_be_a_dataset(arrays: Any, labels: Any, splits: Any, says: str) -> None:
    with pytest.raises(FirststepError, match=says):
        from_arrays(arrays, labels, splits)
