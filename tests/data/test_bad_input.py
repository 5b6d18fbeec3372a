"""Mistakes that users make: one clear line each, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dataset_copies as copies
from firststep.data import open_dataset
from firststep.errors import FirststepError
from refusals import refused


def test_path_that_does_not_exist(tmp_path: Path) -> None:
    assert "nowhere does not exist" in refused("cub", tmp_path / "nowhere")
    assert "--download" in refused("omniglot", tmp_path / "nowhere")


def test_path_with_nothing_in_it(tmp_path: Path) -> None:
    message = refused("mini-imagenet", tmp_path)
    assert f"{tmp_path} is empty" in message
    assert "mini-imagenet-cache-{train,val,test}.pkl" in message


@pytest.mark.parametrize(
    "name", ["omniglot", "cifar-fs", "fc100", "mini-imagenet", "tiered-imagenet", "cub", "folder"]
)
def test_layout_nobody_knows(name: str, tmp_path: Path) -> None:
    (tmp_path / "something.dat").write_bytes(b"?")
    message = refused(name, tmp_path)
    assert f"no {name} found in {tmp_path}; looked for: " in message
    assert refused(name, tmp_path / "something.dat").startswith(f"no {name} found")


def cut_one(root: Path) -> Path:
    """Write a folder of noise images, one of them truncated."""
    rng = np.random.default_rng(0)
    for name in ("ant", "bee", "cat"):
        (root / name).mkdir(parents=True)
        for i in range(3):
            noise = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
            Image.fromarray(noise).save(root / name / f"{i}.jpg")
    broken = root / "bee" / "1.jpg"
    broken.write_bytes(broken.read_bytes()[:900])
    return broken


def test_truncated_jpeg_is_named_and_skipped_only_if_asked(tmp_path: Path) -> None:
    broken = cut_one(tmp_path)
    message = refused("folder", tmp_path)
    assert str(broken) in message
    assert "`skip_broken=True`" in message
    dataset = open_dataset("folder", tmp_path, skip_broken=True)
    assert dataset.record.broken == [str(broken)]
    counts = {
        n: c
        for s in dataset.splits
        for n, c in zip(dataset.split(s).classes, dataset.split(s).counts, strict=True)
    }
    assert counts == {"ant": 3, "bee": 2, "cat": 3}
    # The cache exists now, but without skip_broken the dataset is still refused.
    assert str(broken) in refused("folder", tmp_path)


@pytest.mark.parametrize(
    "write",
    [
        lambda root: [copies.write_folder(root / split, ["ant", "bee"], 1) for split in ("train", "test")],
        lambda root: copies.write_folder(root, ["ant", "Ant", "bee"], 1),
        lambda root: copies.write_folder(root, ["caf\u00e9", "cafe\u0301"], 1),
    ],
    ids=["in two splits", "but for case", "but for the encoding of é"],
)
def test_two_classes_with_the_same_name(write: Callable[[Path], object], tmp_path: Path) -> None:
    write(tmp_path)
    assert "two classes have the same name" in refused("folder", tmp_path)


def test_csv_that_lists_missing_files(tmp_path: Path) -> None:
    copies.mini_csv(tmp_path)
    next((tmp_path / "images").iterdir()).unlink()
    notes = open_dataset("mini-imagenet", tmp_path, partial=True).record.notes
    assert any("lists 1 files that images/ does not have" in note for note in notes)


def test_split_that_is_not_there(tmp_path: Path) -> None:
    copies.write_folder(tmp_path / "train", ["ant", "bee"], 2)
    with pytest.raises(FirststepError, match="folder has no split 'val'; it has train"):
        open_dataset("folder", tmp_path).split("val")
