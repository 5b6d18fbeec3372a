"""Augmentation is off by default and seeded by the episode, and each part has an effect."""

from __future__ import annotations

import numpy as np
import pytest

from firststep.data import Augmentation, Episodes, Preprocessing, Split
from firststep.data.draws import Draws
from firststep.errors import FirststepError


def split(channels: int = 3) -> Split:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3 * 6, 16, 16, channels), dtype=np.uint8)
    recipe = Preprocessing(image_size=16, channels=channels)
    return Split("folder", "train", ["a", "b", "c"], [6] * 3, images, recipe)


def episodes(augment: Augmentation | bool, channels: int = 3) -> Episodes:
    return Episodes(split(channels), ways=3, shots=2, queries=4, augment=augment)


@pytest.mark.parametrize("channels", [1, 3])
def test_repeatable_and_different_from_plain(channels: int) -> None:
    plain, changed = episodes(False, channels)[5], episodes(True, channels)[5]
    np.testing.assert_array_equal(changed.support_x, episodes(True, channels)[5].support_x)
    assert changed.query_x.shape == plain.query_x.shape
    assert not np.allclose(changed.support_x, plain.support_x)
    assert changed.query_x.std() > 0.1


def test_off_by_default() -> None:
    default = Episodes(split(), ways=3, shots=2, queries=4)[5]
    np.testing.assert_array_equal(default.support_x, episodes(False)[5].support_x)


NOTHING = {"smallest_crop": 1.0, "jitter": 0.0, "flip": False}


def test_all_parts_off_changes_nothing() -> None:
    images = split().images
    np.testing.assert_array_equal(Augmentation(**NOTHING)(images, Draws("x")), images)


def test_flip_mirrors_about_half() -> None:
    images = split().images
    changed = Augmentation(**{**NOTHING, "flip": True})(images, Draws("x"))
    mirrored = [np.array_equal(c, i[:, ::-1]) for c, i in zip(changed, images, strict=True)]
    same = [np.array_equal(c, i) for c, i in zip(changed, images, strict=True)]
    assert all(m or s for m, s in zip(mirrored, same, strict=True))
    assert 3 <= sum(mirrored) <= 15


def test_crop_keeps_a_part() -> None:
    """Crops of an image with a black left half show one or both halves, in varying shares."""
    image = np.zeros((1, 16, 16, 3), np.uint8)
    image[:, :, 8:] = 200
    changed = Augmentation(smallest_crop=0.3, jitter=0, flip=False)(np.repeat(image, 20, 0), Draws("x"))
    assert changed.max() == 200
    assert changed.min() == 0
    shares = (changed[..., 0] > 100).mean(axis=(1, 2))
    assert shares.std() > 0.05


def test_jitter_changes_brightness_within_its_range() -> None:
    image = np.full((30, 8, 8, 3), 100, np.uint8)
    changed = Augmentation(smallest_crop=1, jitter=0.2, flip=False)(image, Draws("x")).astype(int)
    assert 75 <= changed.min() < 95
    assert 105 < changed.max() <= 125


def test_impossible_strengths_are_refused() -> None:
    for wrong in ({"smallest_crop": 0.0}, {"aspect": 0.5}, {"jitter": 1.0}):
        with pytest.raises(FirststepError, match="augmentation needs"):
            Augmentation(**wrong)
