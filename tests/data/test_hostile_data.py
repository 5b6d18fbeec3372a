"""Pickles, npz and csv that were made to do harm, or that a disk damaged: one line with the file's name."""

from __future__ import annotations

import pickle
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataset_copies as copies
from firststep.data import open_dataset
from firststep.data.unpickle import load_pickle
from firststep.errors import FirststepError

pytestmark = pytest.mark.timeout(60)


def refused(name: str, path: Path, file: str) -> str:
    with pytest.raises(FirststepError, match=file) as caught:
        open_dataset(name, path, partial=True)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def array_pickle(shape: bytes, dtype: bytes = b"u1", data: bytes = bytes(300)) -> bytes:
    """A pickled array whose claims about itself are free to choose; ``shape`` is a pickled tuple."""

    def text(content: bytes) -> bytes:
        return b"X" + struct.pack("<I", len(content)) + content

    return (
        b"\x80\x03cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R(K\x01"
        + shape
        + b"cnumpy\ndtype\n"
        + text(dtype)
        + b"K\x00K\x01\x87R\x89B"
        + struct.pack("<I", len(data))
        + data
        + b"tb."
    )


def numbers(*values: int) -> bytes:
    return b"(" + b"".join(b"I%d\n" % value for value in values) + b"t"


def nested(depth: int, opening: bytes, closing: bytes) -> bytes:
    return b"\x80\x04" + opening * depth + closing * depth


HOSTILE = {
    "a terabyte": array_pickle(numbers(10**6, 10**6)),
    "beyond 64 bits": array_pickle(numbers(10**30)),
    "a little more than there is": array_pickle(numbers(301)),
    "less than there is": array_pickle(numbers(299)),
    "negative": array_pickle(numbers(-1, 300)),
    "negative twice": array_pickle(numbers(-1, -300)),
    "fractions": array_pickle(b"(F300.0\nt"),
    "no tuple": array_pickle(b"K\x05"),
    "objects": array_pickle(numbers(300), b"O8"),
    "wide items": array_pickle(numbers(300), b"(1000000,1000000)u1"),
    "fields": array_pickle(numbers(100), b"u1,u1,u1"),
    "deprecated type": array_pickle(numbers(300), b"a1"),
    "no item": array_pickle(numbers(300), b"S0"),
    "no such type": array_pickle(numbers(300), b"f3"),
    "deep tuple as a key": b"\x80\x04}" + b")" + b"\x85" * 200_000 + b"K\x01s.",
    "tuples that double as a key": b"\x80\x04})" + b"q\x00h\x00\x86" * 60 + b"K\x01s.",
    "set of such": b"\x80\x04\x8f()" + b"\x85" * 200_000 + b"\x90.",
    "one list copied again and again": (
        b"\x80\x04](" + b"K\x01" * 20_000 + b"e\x94" + b"c__builtin__\nlist\nh\x00\x85R" * 20_000 + b"."
    ),
    "a line without end": b"\x80\x02I" + b"1" * 200_000,
    "a name that is no text": b"\x80\x04))\x93.",
    "too many types": (
        b"\x80\x03"
        + b"cnumpy\ndtype\nX\x02\x00\x00\x00i4K\x00K\x01\x87R(K\x03X\x01\x00\x00\x00>tb" * 2000
        + b"."
    ),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_pickle(content: bytes, tmp_path: Path) -> None:
    for split in ("train", "val", "test"):
        (tmp_path / f"mini-imagenet-cache-{split}.pkl").write_bytes(content)
    refused("mini-imagenet", tmp_path, r"mini-imagenet-cache-train\.pkl")


def test_deep_lists_do_not_end_the_process(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(nested(300_000, b"](", b"e") + b".")
    load_pickle(tmp_path / "a.pkl")


def doubling(depth: int) -> list[Any]:
    inner: list[Any] = [1, 2]
    for _ in range(depth):
        inner = [inner, inner]
    return inner


MINI: dict[str, dict[str, Any]] = {
    "class_dict is a list": {"class_dict": [1, 2]},
    "rows are text": {"class_dict": {"n1": ["0", "1"]}},
    "rows are fractions": {"class_dict": {"n1": [0.5]}},
    "rows are nothing": {"class_dict": {"n1": None}},
    "rows are negative": {"class_dict": {"n1": [-1]}},
    "rows are huge": {"class_dict": {"n1": [1 << 80]}},
    "rows double": {"class_dict": {"n1": doubling(50)}},
    "names are tuples": {"class_dict": {("n", "1"): [0]}},
    "long name": {"class_dict": {"n" * 1000: [0]}},
    "images are a list": {"image_data": doubling(50)},
    "images have no side": {"image_data": np.zeros((2, 0, 8, 3), np.uint8)},
    "images are a number": {"image_data": 5},
}


@pytest.mark.parametrize("changes", MINI.values(), ids=MINI)
def test_pickle_of_other_types(changes: dict[str, Any], tmp_path: Path) -> None:
    content = {"image_data": np.zeros((2, 8, 8, 3), np.uint8), "class_dict": {"n1": [0, 1]}, **changes}
    for split in ("train", "val", "test"):
        copies.python3_pickle(tmp_path / f"mini-imagenet-cache-{split}.pkl", content)
    refused("mini-imagenet", tmp_path, r"mini-imagenet-cache-train\.pkl")


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
    """Whatever a damaged file gives, it is never another exception than the one for users."""
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
            open_dataset(dataset, tmp_path, image_size=8, partial=True, skip_broken=True)
        except FirststepError:
            continue


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
        assert says in refused("tiered-imagenet", tmp_path, r"train_images\.npz")
    content = bytearray(whole)
    content[len(content) // 2] ^= 1  # a pixel
    file.write_bytes(content)
    assert "CRC" in refused("tiered-imagenet", tmp_path, r"train_images\.npz")


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
    ],
)
def test_damaged_csv(content: bytes, says: str, tmp_path: Path) -> None:
    copies.mini_csv(tmp_path)
    (tmp_path / "val.csv").write_bytes(content)
    assert says in refused("mini-imagenet", tmp_path, r"val\.csv")


def test_csv_of_a_spreadsheet(tmp_path: Path) -> None:
    copies.mini_csv(tmp_path)
    expected = open_dataset("mini-imagenet", tmp_path, partial=True).fingerprint
    lines = (tmp_path / "val.csv").read_text().replace("\n", "\r\n")
    (tmp_path / "val.csv").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    assert open_dataset("mini-imagenet", tmp_path, partial=True).fingerprint == expected


def test_cifar_with_other_types(tmp_path: Path) -> None:
    for name in ("train", "test"):
        content = {b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": 7}
        (tmp_path / name).write_bytes(pickle.dumps(content, protocol=2))
    (tmp_path / "meta").write_bytes(pickle.dumps({b"fine_label_names": [b"apple"]}, protocol=2))
    assert "expected an array" in refused("cifar-fs", tmp_path, "train")
    for labels, says in (([0, -1], "label -1 is used"), ([0, 1], "label 1 is used"), ([0], "2 images but 1")):
        content = {b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": labels}
        for name in ("train", "test"):
            (tmp_path / name).write_bytes(pickle.dumps(content, protocol=2))
        assert says in refused("cifar-fs", tmp_path, "train|meta")
