"""A damaged cache is never used: it is made again if opening notices the damage, and refused otherwise."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataset_copies as copies
from firststep.cli import main
from firststep.data import CachedDataset, Episodes, open_dataset
from firststep.errors import FirststepError


def flip(path: Path, place: int = 5000) -> None:
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1]))


@pytest.fixture
def dataset(tmp_path: Path) -> CachedDataset:
    copies.folder_with_splits(tmp_path / "data")
    return open_dataset("folder", tmp_path / "data")


def use_all(dataset: CachedDataset) -> None:
    split = dataset.split("train")
    episodes = Episodes(split, ways=3, shots=1, queries=2)
    for index in range(20):
        episodes[index]


def test_flipped_bit_is_refused_when_its_image_is_used_and_made_again(dataset: CachedDataset) -> None:
    expected = np.array(dataset.split("train").images)
    flip(dataset.folder / "train.u8")
    path = dataset.folder.parents[1]
    again = open_dataset("folder", path)  # the image has not been read yet
    with pytest.raises(FirststepError, match=r"damaged: image 0 of train .* rebuilt") as caught:
        use_all(again)
    assert str(dataset.folder) in str(caught.value)
    seen: list[str] = []
    repaired = open_dataset("folder", path, progress=lambda what, done, total: seen.append(what))
    assert any("is damaged and is made again" in what for what in seen)
    np.testing.assert_array_equal(repaired.split("train").images, expected)
    use_all(repaired)


def test_images_that_are_not_used_are_not_read(dataset: CachedDataset) -> None:
    flip(dataset.folder / "train.u8", dataset.record.image_bytes * 8)
    split = open_dataset("folder", dataset.folder.parents[1]).split("train")
    assert len(split.pixels(np.arange(8))) == 8
    with pytest.raises(FirststepError, match="image 8 of train"):
        split.pixels(np.array([0, 8]))


def test_splits_of_the_same_size_that_were_swapped(tmp_path: Path) -> None:
    for split in ("train", "test"):
        copies.write_folder(tmp_path / split, [f"{split}-a", f"{split}-b", f"{split}-c"], 3)
    dataset = open_dataset("folder", tmp_path)
    for ending in ("u8", "crc32"):
        one, other = dataset.folder / f"train.{ending}", dataset.folder / f"test.{ending}"
        one.rename(tmp_path / "aside")
        other.rename(one)
        (tmp_path / "aside").rename(other)
        if ending == "u8":
            with pytest.raises(FirststepError, match="is damaged"):
                use_all(open_dataset("folder", tmp_path))
            (dataset.folder / "damaged").unlink()
    use_all(open_dataset("folder", tmp_path))  # with both swapped, opening notices it
    assert open_dataset("folder", tmp_path, verify=True).fingerprint == dataset.fingerprint


def test_the_cache_of_other_data_under_this_name(dataset: CachedDataset, tmp_path: Path) -> None:
    copies.write_folder(tmp_path / "data" / "train", ["wolf"], 3)
    other = open_dataset("folder", tmp_path / "data")
    shutil.rmtree(other.folder)
    shutil.copytree(dataset.folder, other.folder)
    assert open_dataset("folder", tmp_path / "data").split("train").classes == ["ant", "bee", "cat", "wolf"]


def test_the_command_compares_every_pixel(dataset: CachedDataset, capsys: pytest.CaptureFixture[str]) -> None:
    flip(dataset.folder / "val.u8")
    assert main(["data", "folder", str(dataset.folder.parents[1])]) == 0
    shown = capsys.readouterr()
    assert "is damaged and is made again" in shown.err
    assert dataset.fingerprint in shown.out


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "another dataset": lambda record: record.update(dataset="cub"),
    "another version": lambda record: record.update(version=0),
    "another recipe": lambda record: record["preprocessing"].update(image_size=32),
    "an impossible recipe": lambda record: record["preprocessing"].update(channels=7),
    "another class": lambda record: record["splits"]["train"]["classes"].__setitem__(0, "wolf"),
    "other counts": lambda record: record["splits"]["train"].update(counts=[2, 4, 3]),
    "text as a count": lambda record: record["splits"]["train"].update(counts=["3", 3, 3]),
    "fractions": lambda record: record["splits"]["train"].update(counts=[3.5, 2.5, 3]),
    "negative": lambda record: record["splits"]["train"].update(counts=[-3, 9, 3]),
    "fewer counts": lambda record: record["splits"]["train"].update(counts=[9]),
    "a split elsewhere": lambda record: record["splits"].update({"../train": record["splits"]["train"]}),
    "no notes": lambda record: record.pop("notes"),
    "no splits": lambda record: record.pop("splits"),
    "no fingerprint": lambda record: record.pop("fingerprint"),
    "an older format": lambda record: record.update(format="firststep-dataset-2"),
    "a newer format": lambda record: record.update(format="firststep-dataset-9"),
    "another kind": lambda record: record.update(format="firststep-evaluation-2"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_record(change: Callable[[dict[str, Any]], object], dataset: CachedDataset) -> None:
    file = dataset.folder / "dataset.json"
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))
    again = open_dataset("folder", dataset.folder.parents[1])
    assert again.record == dataset.record
    use_all(again)


def test_truncated_pixels_are_made_again(dataset: CachedDataset) -> None:
    expected = np.array(dataset.split("train").images)
    with open(dataset.folder / "train.u8", "r+b") as file:
        file.truncate(100)
    again = open_dataset("folder", dataset.folder.parents[1])
    np.testing.assert_array_equal(again.split("train").images, expected)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_record_that_cannot_be_read(content: bytes, dataset: CachedDataset) -> None:
    (dataset.folder / "dataset.json").write_bytes(content)
    assert open_dataset("folder", dataset.folder.parents[1]).record == dataset.record


def test_file_where_the_cache_should_be(dataset: CachedDataset) -> None:
    shutil.rmtree(dataset.folder)
    dataset.folder.write_text("not a folder")
    use_all(open_dataset("folder", dataset.folder.parents[1]))


def test_leftovers_of_another_cache_are_removed(dataset: CachedDataset) -> None:
    root = dataset.folder.parent
    (root / ".folder-84px-0123456789abcdef.x7_z").mkdir()
    open_dataset("folder", root.parent, image_size=20)
    assert not list(root.glob(".folder*"))


def test_too_little_space_is_said_before_anything_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies.folder_with_splits(tmp_path)
    monkeypatch.setattr("firststep.data.disk_space.free_space", lambda folder: 300_000)
    with pytest.raises(FirststepError, match=r"cache of 21 images needs 445 kB in .* 300 kB are free"):
        open_dataset("folder", tmp_path)
    assert [p.suffix for p in (tmp_path / ".firststep-cache").iterdir()] == [".lock"]
