"""Damaged npz, csv and pickle files: other data, or one line with the name of the file."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataset_copies as copies
from firststep.data import open_dataset
from firststep.errors import FirststepError
from refusals import refused

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize(
    ("dataset", "write", "pattern"),
    [
        ("mini-imagenet", copies.mini_cache, "*train.pkl"),
        ("mini-imagenet", copies.mini_category_split, "*train_phase_train.pickle"),
        ("tiered-imagenet", copies.tiered_npz, "train_images.npz"),
        ("tiered-imagenet", copies.tiered_npz, "train_labels.pkl"),
        ("mini-imagenet", copies.mini_csv, "train.csv"),
    ],
)
def test_any_damage_is_an_error_or_other_data(dataset: str, write, pattern: str, tmp_path: Path) -> None:
    """A damaged file gives data or a ``FirststepError``, never another exception."""
    write(tmp_path)
    (file,) = tmp_path.glob(pattern)
    whole = file.read_bytes()
    generator = random.Random(pattern)
    for _ in range(25):
        content = bytearray(whole)
        for _ in range(generator.choice((1, 2, 8))):
            place = generator.randrange(min(len(content), generator.choice((300, 2000, 10**8))))
            content[-place if generator.random() < 0.3 else place] = generator.randrange(256)
        file.write_bytes(content)
        try:
            found = open_dataset(dataset, tmp_path, image_size=8, partial=True, skip_broken=True)
        except FirststepError as error:
            message = str(error)
        else:
            assert found.split("train").images.shape[1:] == (8, 8, 3)
            continue
        assert str(tmp_path) in message
        assert "\n" not in message


def rewritten(path: Path, change: Any) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members = change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def npy(value: Any, path: Path) -> bytes:
    np.save(path / "x.npy", value, allow_pickle=True)
    return (path / "x.npy").read_bytes()


def test_spliced_npz(tmp_path: Path) -> None:
    copies.tiered_npz(tmp_path)
    file = tmp_path / "train_images.npz"
    whole = file.read_bytes()
    right = npy(np.zeros((18, 84, 84, 3), np.uint8), tmp_path)
    changes = {
        "arrays called 'images', not one": lambda members: {"others.npy": right},
        "holds objects": lambda members: {"images.npy": npy(np.array([{}, None]), tmp_path)},
        "expected uint8": lambda members: {"images.npy": npy(np.zeros((18, 84, 84, 3), "f4"), tmp_path)},
        "5 images but 18 labels": lambda members: {"images.npy": npy(np.zeros((5, 8, 8, 3), "u1"), tmp_path)},
        "has not the size": lambda members: {"images.npy": right[:-1]},
        "has not the size that its shape": lambda members: {"images.npy": right.replace(b"(18,", b"(99,")},
        "is not a complete npz": lambda members: {"images.npy": b"\x93NUMPY\x01\x00\x06\x00{'a':("},
        "complete npz with 'images'": lambda members: {"images.npy": b""},
        "has not the size that": lambda members: {"images.npy": right.replace(b"(18,", b"(-1,")},
    }
    for says, change in changes.items():
        file.write_bytes(whole)
        rewritten(file, change)
        assert says in refused("tiered-imagenet", tmp_path, r"train_images\.npz", partial=True)
    np.savez_compressed(file, images=np.zeros((18, 84, 84, 3), np.uint8))
    assert "is compressed" in refused("tiered-imagenet", tmp_path, r"train_images\.npz", partial=True)
    content = bytearray(whole)
    content[len(content) // 2] ^= 1  # a pixel
    file.write_bytes(content)
    assert "CRC" in refused("tiered-imagenet", tmp_path, r"train_images\.npz", partial=True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"filename,label\n\xff\xfe.jpg,n1\n", "is not UTF-8 text"),
        ("filename,label\na.jpg,n1\n".encode("utf-16"), "is not UTF-8 text"),
        (b"filename,label\na\0.jpg,n1\n", "has a zero byte on line 2"),
        (b"filename,label\n" + b"a" * 200_000 + b",n1\n", "line 2 cannot be read"),
        (b"filename,label\na.jpg\n", "line 2 has more or fewer columns"),
        (b"filename,label\na.jpg,n1,n2\n", "line 2 has more or fewer columns"),
        (b'filename,label\n"a.jpg,n1\n', "line 2 has more or fewer columns"),
        (b"filename\na.jpg\n", "must name the columns filename,label"),
        (b"", "must name the columns filename,label"),
        (b"filename,label\n,n1\n", "'' is not a file name"),
        (b"filename,label\n../../a.jpg,n1\n", "'../../a.jpg' is not a file name"),
    ],
)
def test_damaged_csv(content: bytes, says: str, tmp_path: Path) -> None:
    copies.mini_csv(tmp_path)
    (tmp_path / "val.csv").write_bytes(content)
    assert says in refused("mini-imagenet", tmp_path, r"val\.csv", partial=True)


def test_csv_of_a_spreadsheet(tmp_path: Path) -> None:
    copies.mini_csv(tmp_path)
    expected = open_dataset("mini-imagenet", tmp_path, partial=True).fingerprint
    lines = (tmp_path / "val.csv").read_text().replace("\n", "\r\n")
    (tmp_path / "val.csv").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    assert open_dataset("mini-imagenet", tmp_path, partial=True).fingerprint == expected
