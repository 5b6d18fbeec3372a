"""The shipped splits have the published counts, and no class or superclass is in two of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import dataset_copies as copies
from dataset_copies import official
from firststep.data import DatasetMismatchError, open_dataset

COUNTS = {
    "omniglot": (1028, 172, 423),
    "cifar-fs": (64, 16, 20),
    "fc100": (60, 20, 20),
    "mini-imagenet": (64, 16, 20),
    "tiered-imagenet": (351, 97, 160),
    "cub": (100, 50, 50),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_and_disjointness(name: str) -> None:
    published = official(name)
    assert tuple(len(published.classes[split]) for split in ("train", "val", "test")) == COUNTS[name]
    everything = [c for classes in published.classes.values() for c in classes]
    assert len(set(everything)) == len(everything) == sum(COUNTS[name])


@pytest.mark.parametrize(("name", "counts"), [("fc100", (12, 4, 4)), ("tiered-imagenet", (20, 6, 8))])
def test_superclasses_are_in_one_split_only(name: str, counts: tuple[int, ...]) -> None:
    published = official(name)
    above = [
        {published.superclass[c] for c in published.classes[split]} for split in ("train", "val", "test")
    ]
    assert tuple(map(len, above)) == counts
    assert len(set.union(*above)) == sum(counts)


def test_cub_takes_every_second_class_for_training() -> None:
    published = official("cub")
    assert published.classes["train"][:3] == ["001", "003", "005"]
    assert published.classes["val"][:3] == ["002", "006", "010"]
    assert published.classes["test"][:3] == ["004", "008", "012"]


@pytest.mark.slow
def test_real_omniglot_is_complete(real_omniglot: Path, tmp_path: Path) -> None:
    dataset = open_dataset("omniglot", real_omniglot, cache=tmp_path)
    splits = {name: dataset.split(name) for name in dataset.splits}
    assert tuple(len(split.classes) for split in splits.values()) == COUNTS["omniglot"]
    assert sum(COUNTS["omniglot"]) == 964 + 659
    assert all(set(split.counts) == {20} for split in splits.values())
    assert dataset.record.differences == []
    # Ink is bright and rare, paper is black.
    sample = splits["test"].images[::97]
    assert sample.max() > 200
    assert 0.02 < (sample > 127).mean() < 0.2
    assert sample[:, 0, 0].max() == 0


def test_everything_missing_or_extra_is_named(tmp_path: Path) -> None:
    copies.mini_folders(tmp_path)
    copies.write_folder(tmp_path / "val", ["n12345678"], 3, "jpg")
    with pytest.raises(DatasetMismatchError, match=r"train: 58 classes missing: .*`partial=True`") as caught:
        open_dataset("mini-imagenet", tmp_path)
    lines = "\n".join(caught.value.lines)
    missing = sorted(
        set(official("mini-imagenet").classes["test"]) - set(copies.some_classes("mini-imagenet")["test"])
    )
    assert f"test: 14 classes missing: {missing[0]}" in lines
    assert "val: 1 class not in the official split: n12345678" in lines
    assert "not of 600 images: n01532829 has 3" in lines
    # The refusal cached nothing, and the cache of the accepted data remembers the differences.
    accepted = open_dataset("mini-imagenet", tmp_path, partial=True)
    assert accepted.record.differences == caught.value.lines
    with pytest.raises(DatasetMismatchError):
        open_dataset("mini-imagenet", tmp_path)


def test_numbered_classes_are_counted(tmp_path: Path) -> None:
    copies.cifar_pickles(tmp_path, "fc100")
    with pytest.raises(DatasetMismatchError, match="train: 6 classes instead of 60"):
        open_dataset("fc100", tmp_path)
