"""What users really have: one clear line each, and nothing lost."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dataset_copies as copies
from firststep.data import open_dataset
from firststep.errors import FirststepError


def refused(name: str, path: Path, **options: object) -> str:
    with pytest.raises(FirststepError) as caught:
        open_dataset(name, path, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


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
    """A folder of noise images, one of them only half there."""
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
    # The cache exists now, but the refusal stays until it is asked for.
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


def test_two_classes_with_the_same_name_in_a_pickle(tmp_path: Path) -> None:
    for split in ("train", "val", "test"):
        content = {"image_data": np.zeros((2, 8, 8, 3), np.uint8), "class_dict": {"n1": [0], b"n1": [1]}}
        copies.python3_pickle(tmp_path / f"mini-imagenet-cache-{split}.pkl", content)
    assert "two classes have the same name: 'n1'" in refused("mini-imagenet", tmp_path)


def archive_with(path: Path, member: str, content: bytes = b"harm") -> None:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(member, content)
        return
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize(
    "member", ["../outside.txt", "a/../../outside.txt", "/tmp/outside.txt", "..\\outside.txt"]
)
@pytest.mark.parametrize(("name", "file"), [("folder", "mine.zip"), ("cub", "CUB_200_2011.tgz")])
def test_archive_that_reaches_outside(name: str, file: str, member: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    archive_with(tmp_path / "data" / file, member)
    message = refused(name, tmp_path / "data" / file)
    assert f"{file} is refused" in message
    assert not list(tmp_path.rglob("*outside*"))


def test_archive_with_a_link(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "CUB_200_2011.tgz", "w:gz") as archive:
        info = tarfile.TarInfo("images/001.A/a.jpg")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    assert "is a link or device" in refused("cub", tmp_path)


@pytest.mark.parametrize("file", ["mine.zip", "mine.tar.gz", "mine.tar"])
def test_broken_archive(file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(b"PK\x03\x04 this is no archive")
    assert f"{file} is broken or incomplete" in refused("folder", tmp_path / file)


def test_archive_of_something_else(tmp_path: Path) -> None:
    archive_with(tmp_path / "CUB_200_2011.tgz", "readme.txt")
    assert "no cub found inside CUB_200_2011.tgz; looked for" in refused("cub", tmp_path)


def test_archive_of_own_images(tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path / "loose")
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as archive:
        for file in (tmp_path / "loose").rglob("*.png"):
            archive.write(file, file.relative_to(tmp_path))
    dataset = open_dataset("folder", tmp_path / "mine.zip")
    assert dataset.split("train").classes == ["ant", "bee", "cat"]
    leftovers = [p.name for p in (tmp_path / ".firststep-cache").iterdir() if p.name.startswith(".")]
    assert leftovers == []


def mini_with(root: Path, **changes: object) -> None:
    content = {"image_data": np.zeros((2, 8, 8, 3), np.uint8), "class_dict": {"n1": [0, 1]}}
    for split in ("train", "val", "test"):
        copies.python3_pickle(root / f"mini-imagenet-cache-{split}.pkl", {**content, **changes})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image_data": np.zeros((2, 8, 8, 3), np.float32)}, "expected uint8"),
        ({"image_data": np.zeros((2, 192), np.uint8)}, "expected uint8 .N, H, W, 3."),
        ({"class_dict": {"n1": [0, 2]}}, "class n1 has image 2 of 2"),
        ({"image_data": "no array"}, "expected an array"),
    ],
)
def test_pickle_with_other_content(changes: dict[str, object], says: str, tmp_path: Path) -> None:
    mini_with(tmp_path, **changes)
    with pytest.raises(FirststepError, match=says) as caught:
        open_dataset("mini-imagenet", tmp_path)
    assert "mini-imagenet-cache-train.pkl" in str(caught.value)


def test_pickle_without_the_right_keys(tmp_path: Path) -> None:
    for split in ("train", "val", "test"):
        copies.python3_pickle(tmp_path / f"FC100_{split}.pickle", {"data": 1, "tables": 2})
    assert "FC100_train.pickle has no 'labels'; it has data, tables" in refused("fc100", tmp_path)


def test_tiered_with_too_few_labels(tmp_path: Path) -> None:
    copies.tiered_npz(tmp_path)
    np.savez(tmp_path / "train_images.npz", images=np.zeros((5, 84, 84, 3), np.uint8))
    assert "train_images.npz: 5 images but 18 labels" in refused("tiered-imagenet", tmp_path)
    np.savez_compressed(tmp_path / "train_images.npz", images=np.zeros((18, 84, 84, 3), np.uint8))
    assert "train_images.npz is compressed" in refused("tiered-imagenet", tmp_path)
    (tmp_path / "train_images.npz").write_bytes(b"PK")
    assert "train_images.npz is not a complete npz" in refused("tiered-imagenet", tmp_path)


def test_csv_with_other_columns_or_paths(tmp_path: Path) -> None:
    copies.mini_csv(tmp_path)
    (tmp_path / "val.csv").write_text("file,class\na.jpg,n1\n")
    assert "must name the columns filename,label" in refused("mini-imagenet", tmp_path)
    (tmp_path / "val.csv").write_text("filename,label\n../../a.jpg,n1\n")
    assert "'../../a.jpg' is not a file name" in refused("mini-imagenet", tmp_path)


def test_csv_that_lists_missing_files(tmp_path: Path) -> None:
    copies.mini_csv(tmp_path)
    next((tmp_path / "images").iterdir()).unlink()
    notes = open_dataset("mini-imagenet", tmp_path, partial=True).record.notes
    assert any("lists 1 files that images/ does not have" in note for note in notes)


def test_split_that_is_not_there(tmp_path: Path) -> None:
    copies.write_folder(tmp_path / "train", ["ant", "bee"], 2)
    with pytest.raises(FirststepError, match="folder has no split 'val'; it has train"):
        open_dataset("folder", tmp_path).split("val")
