"""Features of a frozen network are computed once, checked when read, and made again when anything differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from firststep.data import CachedDataset, Episodes, FeatureDataset, FrozenBody, from_arrays
from firststep.errors import FirststepError


class Means:
    """A body with two features, the mean and the maximum of an image. It counts its images."""

    def __init__(self) -> None:
        self.images = 0

    def __call__(self, images: np.ndarray) -> np.ndarray:
        self.images += len(images)
        return np.stack([images.mean((1, 2, 3)), images.max((1, 2, 3))], 1)

    def frozen(self, digest: str = "a") -> FrozenBody:
        return FrozenBody(name="means", digest=digest, features=2, compute=self)


@pytest.fixture
def data(glyphs: CachedDataset, tmp_path: Path) -> CachedDataset:
    """Return glyphs whose features are written to a folder of this test."""
    for name in ("val.u8", "val.crc32"):
        (tmp_path / name).symlink_to(glyphs.folder / name)
    return CachedDataset(tmp_path, glyphs.record)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def test_episodes_have_the_features_of_their_images(data: CachedDataset) -> None:
    body = Means()
    features = FeatureDataset(data, body.frozen())
    images = Episodes(data.split("val"), ways=3, shots=2, queries=2)[5]
    found = Episodes(features.split("val"), ways=3, shots=2, queries=2)[5]
    np.testing.assert_array_equal(found.support_x, Means()(images.support_x))
    np.testing.assert_array_equal(found.query_x, Means()(images.query_x))
    np.testing.assert_array_equal(found.query_y, images.query_y)


def test_they_are_computed_once_for_each_body_and_data(data: CachedDataset) -> None:
    body, told = Means(), []
    total = len(data.split("val").images)
    for _ in range(2):
        FeatureDataset(data, body.frozen(), lambda *step: told.append(step)).split("val")
    assert body.images == total
    assert told[-1] == ("means on val", total, total)
    FeatureDataset(data, body.frozen("b")).split("val")
    assert body.images == 2 * total
    FeatureDataset(
        CachedDataset(data.folder, replace(data.record, fingerprint="other")), body.frozen()
    ).split("val")
    assert body.images == 3 * total
    assert len(files(data.folder)) == 3


def test_features_of_arrays_in_memory_need_no_file() -> None:
    images = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)
    data = from_arrays(images, np.arange(12) % 4, {"train": [0, 1], "val": [2, 3]})
    body = Means()
    features = FeatureDataset(data, body.frozen())
    for _ in range(2):
        found = features.split("val").inputs(np.arange(6))
    np.testing.assert_array_equal(found, Means()(data.split("val").inputs(np.arange(6))))
    assert body.images == 6


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "text"])
def test_a_damaged_file_is_made_anew(data: CachedDataset, damage: str) -> None:
    body = Means()
    features = FeatureDataset(data, body.frozen())
    expected = features.split("val").features
    (path,) = files(data.folder)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes({"flip": content, "cut": content[:-9], "empty": b"", "text": b"features"}[damage])
    np.testing.assert_array_equal(features.split("val").features, expected)
    assert body.images == 2 * len(expected)
    np.testing.assert_array_equal(features.split("val").features, expected)
    assert body.images == 2 * len(expected)


def test_a_failure_leaves_no_file(data: CachedDataset) -> None:
    broken = FrozenBody(
        name="x", digest="a", features=2, compute=lambda images: np.full((len(images), 2), np.nan)
    )
    with pytest.raises(FirststepError, match="not finite on val"):
        FeatureDataset(data, broken).split("val")
    assert files(data.folder) == []


def test_features_are_not_augmented(data: CachedDataset) -> None:
    with pytest.raises(FirststepError, match="`augment` changes images"):
        Episodes(FeatureDataset(data, Means().frozen()).split("val"), augment=True)
