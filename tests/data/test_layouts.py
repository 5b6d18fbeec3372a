"""Every layout of every dataset, on a small copy in the true format: each image is in its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dataset_copies as copies
from firststep.data import DATASETS, Dataset, open_dataset
from firststep.errors import FirststepError


def check(dataset: Dataset, expected: copies.Expected, tolerance: int) -> None:
    assert set(dataset.splits) == set(expected)
    for name, classes in expected.items():
        split = dataset.split(name)
        assert split.classes == list(classes)
        assert split.counts == [len(colours) for colours in classes.values()]
        colours = np.array([c for colours in classes.values() for c in colours])[:, None, None]
        assert np.abs(split.images.astype(int) - colours[..., : dataset.channels]).max() <= tolerance


@pytest.mark.parametrize("copy", copies.COPIES, ids=str)
def test_layout_is_found_and_read(copy: copies.Copy, tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    expected = copy.write(root)
    dataset = open_dataset(copy.dataset, root, partial=True)
    assert copy.says in dataset.record.layout
    check(dataset, expected, copy.tolerance)
    # The parent folder gives the same data, from the cache.
    again = open_dataset(copy.dataset, tmp_path, partial=True)
    assert again.fingerprint == dataset.fingerprint


def test_every_dataset_and_layout_has_a_copy() -> None:
    for name in DATASETS:
        if name != "glyphs":
            written = sum(copy.dataset == name for copy in copies.COPIES)
            # The second layout of folder, without splits, has its own test below.
            assert written >= len(DATASETS[name].layouts) - (name == "folder")


@pytest.mark.parametrize(
    ("dataset", "write", "part"),
    [
        ("omniglot", copies.omniglot, "images_background"),
        ("omniglot", copies.omniglot_zips, "images_evaluation.zip"),
        ("mini-imagenet", copies.mini_cache, "mini-imagenet-cache-test.pkl"),
        ("mini-imagenet", copies.mini_folders, "train"),
        ("cub", copies.cub_archive, "CUB_200_2011.tgz"),
    ],
)
def test_a_part_may_be_given_for_the_whole(dataset: str, write, part: str, tmp_path: Path) -> None:
    expected = write(tmp_path)
    check(open_dataset(dataset, tmp_path / part, partial=True), expected, tolerance=6)


def test_class_folders_are_split_by_the_seed_alone(tmp_path: Path) -> None:
    names = [f"animal{i:02d}" for i in range(25)]
    copies.write_folder(tmp_path, names, 2)
    splits = {seed: open_dataset("folder", tmp_path, seed=seed) for seed in (0, 1)}
    for dataset in splits.values():
        found = {name: dataset.split(name).classes for name in ("train", "val", "test")}
        assert {name: len(classes) for name, classes in found.items()} == {"train": 16, "val": 4, "test": 5}
        assert sorted(n for classes in found.values() for n in classes) == names
        for name, classes in found.items():
            assert classes == sorted(classes)
            check_colours = [copies.colour(c, i) for c in classes for i in range(2)]
            np.testing.assert_array_equal(dataset.split(name).images[:, 0, 0], check_colours)
    assert splits[0].split("test").classes != splits[1].split("test").classes


def test_folder_below_the_given_one_is_found(tmp_path: Path) -> None:
    copies.write_folder(tmp_path / "a" / "animals", ["ant", "bee"], 2)
    assert open_dataset("folder", tmp_path, seed=0).split("train").classes == ["ant", "bee"]


def test_grey_folder(tmp_path: Path) -> None:
    copies.write_folder(tmp_path, ["ant", "bee"], 2)
    dataset = open_dataset("folder", tmp_path, channels=1, image_size=20)
    assert dataset.split("train").images.shape == (4, 20, 20, 1)
    assert (dataset.channels, dataset.image_size, len(dataset.mean)) == (1, 20, 1)


def test_rotations_are_extra_classes_turned_left(tmp_path: Path) -> None:
    copies.omniglot(tmp_path)
    image = next((tmp_path / "images_background").rglob("*.png"))
    corner = np.full((105, 105), True)
    corner[:52, :52] = False  # ink in the top left
    Image.fromarray(corner).save(image)
    plain = open_dataset("omniglot", tmp_path, partial=True).split("train")
    turned = open_dataset("omniglot", tmp_path, partial=True, rotations=True).split("train")
    assert len(turned.classes) == 4 * len(plain.classes)
    name = f"{image.parent.parent.name}/{image.parent.name}"
    upright = plain.images[plain.starts()[plain.classes.index(name)]]
    for turns in range(4):
        class_ = turned.classes.index(name if turns == 0 else f"{name}@{90 * turns}")
        np.testing.assert_array_equal(turned.images[turned.starts()[class_]], np.rot90(upright, turns))


def test_other_files_are_named_and_ignored(tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path)
    (tmp_path / "train" / "cat" / "notes.txt").write_text("meow")
    dataset = open_dataset("folder", tmp_path)
    assert dataset.record.ignored == [str(tmp_path / "train" / "cat" / "notes.txt")]
    assert dataset.split("train").counts == [3, 3, 3]


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("glyphs", {"path": "somewhere"}, "leave the path out"),
        ("omniglot", {"path": ".", "seed": 3}, "seed is for folder and glyphs only, not for omniglot"),
        ("fc100", {"path": ".", "rotations": True}, "omniglot only"),
        ("cub", {"path": ".", "channels": 1}, "folder only"),
        ("miniimagenet", {"path": "."}, "did you mean mini-imagenet"),
    ],
)
def test_options_that_do_not_fit_are_refused(name: str, options: dict, says: str) -> None:
    with pytest.raises(FirststepError, match=says):
        open_dataset(name, **options)
