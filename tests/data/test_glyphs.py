"""glyphs has enough classes, split by script, without look-alikes, and the same pixels everywhere."""

from __future__ import annotations

import hashlib
import unicodedata
from pathlib import Path

import numpy as np
import pytest

import glyph_selection as selection
from firststep.data import Dataset, Episodes, open_dataset
from firststep.data import glyphs as glyphs_package
from firststep.data.draws import Draws
from firststep.data.glyphs import glyph_classes
from firststep.data.glyphs.drawing import sample, upright
from firststep.data.glyphs.outlines import FACES, fonts_digest
from firststep.data.glyphs.raster import SUBPIXELS, fill, shrink, thicken

# Digests of the fonts that matplotlib has shipped since 2017, and of all pixels of seed 0.
FONTS = "16babe5c0753da54"
FINGERPRINT = "0c69e71b7d812657"


def test_classes_and_counts(glyphs: Dataset) -> None:
    least = {"train": 300, "val": 60, "test": 100}
    for name, classes in least.items():
        split = glyphs.split(name)
        assert len(split.classes) >= classes
        assert set(split.counts) == {40}
        assert split.images.shape[1:] == (32, 32, 1)
        assert split.images.dtype == np.uint8


def test_pixels_are_the_known_ones(glyphs: Dataset) -> None:
    if fonts_digest()[:16] != FONTS:
        pytest.skip("other DejaVu files than those the recorded fingerprint is of")
    assert glyphs.fingerprint == FINGERPRINT


def test_no_script_is_in_two_splits() -> None:
    scripts = {
        split: {
            unicodedata.name(character).split()[0] for forms in classes.values() for character, _ in forms
        }
        for split, classes in glyph_classes().items()
    }
    assert {"LATIN", "GREEK", "CYRILLIC"} <= scripts["train"]
    assert not scripts["train"] & scripts["val"]
    assert not scripts["train"] & scripts["test"]
    assert not scripts["val"] & scripts["test"]


def test_frozen_catalogue_is_what_the_fonts_give(tmp_path: Path) -> None:
    fresh = tmp_path / "catalogue.json"
    selection.write(fresh)
    assert fresh.read_text() == Path(glyphs_package.__file__).with_name("catalogue.json").read_text()


def test_classes_look_different_within_and_between_splits() -> None:
    """The mean unmatched ink of the first characters of any two classes is above the limit."""
    first = [forms[0][0] for classes in glyph_classes().values() for forms in classes.values()]
    by_face = selection.unmatched_ink(first)
    shared = (~np.isnan(by_face)).sum(axis=0)
    mean = np.nansum(by_face, axis=0) / np.maximum(shared, 1)
    np.fill_diagonal(mean, np.inf)
    mean[shared == 0] = np.inf
    assert mean.min() > selection.ALIKE


def test_look_alikes_are_one_class() -> None:
    members = {
        forms[0][0]: {character for character, _ in forms} for forms in glyph_classes()["train"].values()
    }
    assert {"A", "\u0391", "\u0410"} <= members["A"]  # Latin, Greek and Cyrillic A
    assert {"S", "s", "\u0405"} <= members["S"]  # and across case
    # Too similar for two classes, yet not the same: left out.
    assert not any("o" in characters for characters in members.values())
    # O with a dot or bar inside is not the same as O.
    assert "\u0298" not in members["O"]


def test_samples_vary_and_have_ink(glyphs: Dataset) -> None:
    for name in glyphs.splits:
        images = glyphs.split(name).images.astype(int)
        ink = (images > 127).mean(axis=(1, 2, 3))
        assert ink.min() > 0.003
        assert ink.max() < 0.7
        assert (np.abs(images[1:] - images[:-1]).max(axis=(1, 2, 3)) > 100).all()


def test_seed_changes_the_pixels_and_nothing_else(glyphs: Dataset) -> None:
    forms = next(iter(glyph_classes()["test"].values()))
    first = sample(Draws("glyph", 1, 0, "x", 0), forms, 32)
    np.testing.assert_array_equal(first, sample(Draws("glyph", 1, 0, "x", 0), forms, 32))
    assert not np.array_equal(first, sample(Draws("glyph", 1, 1, "x", 0), forms, 32))


def test_other_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Glyphs are drawn at the requested size."""
    few = {split: dict(list(classes.items())[:2]) for split, classes in glyph_classes().items()}
    monkeypatch.setattr("firststep.data.glyphs.glyph_classes", lambda: few)
    dataset = open_dataset("glyphs", image_size=64, seed=5, cache=tmp_path)
    assert dataset.split("val").images.shape == (80, 64, 64, 1)


def nearest_neighbour(episodes: Episodes, count: int) -> float:
    hits = []
    for i in range(count):
        task = episodes[i]
        support = task.support_x.reshape(len(task.support_x), -1)
        query = task.query_x.reshape(len(task.query_x), -1)
        distance = (support**2).sum(axis=1) - 2 * query @ support.T
        hits.append((task.support_y[distance.argmin(axis=1)] == task.query_y).mean())
    return float(np.mean(hits))


def test_pixels_alone_do_not_solve_it(glyphs: Dataset) -> None:
    """The nearest neighbour in pixel space is far from perfect and far from guessing."""
    test = glyphs.split("test")
    assert 0.5 < nearest_neighbour(Episodes(test, shots=1), 100) < 0.7
    assert 0.7 < nearest_neighbour(Episodes(test, shots=5), 100) < 0.9


def test_raster_of_a_square_with_a_hole() -> None:
    """Contours in opposite directions leave a hole, and the area is exact."""
    unit = 256
    outer = np.array([[1, 1], [9, 1], [9, 9], [1, 9]]) * unit
    inner = np.array([[3, 3], [3, 7], [7, 7], [7, 3]]) * unit
    following = np.array([1, 2, 3, 0, 5, 6, 7, 4])
    ink = fill(np.concatenate([outer, inner]), following, 12)
    expected = np.zeros((12, 12), bool)
    expected[1:9, 1:9] = True
    expected[3:7, 3:7] = False
    np.testing.assert_array_equal(ink, expected)
    same_way = fill(np.concatenate([outer, inner[::-1]]), following, 12)
    assert same_way.sum() == 64  # overlapping contours in the same direction are solid


def test_thicken_and_shrink() -> None:
    ink = np.zeros((12, 12), bool)
    ink[4:8, 4:8] = True
    assert thicken(ink, 1).sum() == 16 + 4 * 4
    assert thicken(ink, -1).sum() == 4
    np.testing.assert_array_equal(thicken(ink, 0), ink)
    shades = shrink(ink)
    assert shades.shape == (12 // SUBPIXELS, 12 // SUBPIXELS)
    assert shades[1, 1] == 255
    assert shades[0, 0] == 0


def test_upright_letter_matches_its_shape() -> None:
    """An L has its stem on the left and its bar at the bottom, because y points down in images."""
    letter = upright("L", FACES[0], 32, 26) > 127
    rows, columns = np.nonzero(letter)
    assert letter[:, columns.min()].sum() > 20
    assert letter[rows.max()].sum() > 10
    assert letter[rows.min()].sum() < 6


def test_draws_are_known_numbers() -> None:
    """These draws decide on which tasks a model is tested, so they must never change."""
    draws = Draws("known", 1)
    values = draws.distinct(5, 100), draws.below(1000), draws.uniform(2).tolist()
    assert hashlib.sha256(repr(values).encode()).hexdigest()[:12] == "a59f287ad9e8"
