"""Hostile pickles, and pickles of other types: one line with the name of the file."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataset_copies as copies
from firststep.data.unpickle import load_pickle
from refusals import refused

pytestmark = pytest.mark.timeout(60)


def array_pickle(shape: bytes, dtype: bytes = b"u1", data: bytes = bytes(300)) -> bytes:
    """Return a pickled array with any claims about itself. ``shape`` is a pickled tuple."""

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
    "a set that is given pairs": b"\x80\x04\x8fK\x01)" + b"\x85" * 200_000 + b"s.",
    "one long shape for many arrays": (
        b"\x80\x04("
        + b"K\x01" * 50_000
        + b"t\x94"
        + b"cnumpy.core.multiarray\n_reconstruct\n)R(K\x01h\x00cnumpy\ndtype\nC\x02u1\x85R\x89C\x01xtb"
        * 20_000
    ),
    "one long list of arguments": (
        b"\x80\x04(" + b"K\x01" * 50_000 + b"t\x94" + b"ccollections\ndefaultdict\nh\x00R" * 20_000 + b"."
    ),
    "an attribute of a function": b"\x80\x04c_codecs\nencode\n}C\x01xNsb.",
    "a function as an image": b"\x80\x04c_codecs\nencode\n.",
    "an array without content": (
        b"\x80\x04}(C\x0aimage_datacnumpy.core.multiarray\n_reconstruct\n)RC\x0aclass_dict}u."
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
    refused("mini-imagenet", tmp_path, r"mini-imagenet-cache-train\.pkl", partial=True)


def test_deep_lists_do_not_end_the_process(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(nested(300_000, b"](", b"e") + b".")
    found, depth = load_pickle(tmp_path / "a.pkl"), 0
    while found:
        (found,), depth = found, depth + 1
    assert depth == 300_000 - 1


def doubling(depth: int) -> list[Any]:
    inner: list[Any] = [1, 2]
    for _ in range(depth):
        inner = [inner, inner]
    return inner


MINI: dict[str, tuple[dict[str, Any], str]] = {
    "class_dict is a list": ({"class_dict": [1, 2]}, "not a dictionary"),
    "rows are text": ({"class_dict": {"n1": ["0", "1"]}}, "expected whole numbers"),
    "rows are fractions": ({"class_dict": {"n1": [0.5]}}, "expected whole numbers"),
    "rows are nothing": ({"class_dict": {"n1": None}}, "expected an array"),
    "rows are negative": ({"class_dict": {"n1": [-1]}}, "class n1 has image -1 of 2"),
    "rows are too large": ({"class_dict": {"n1": [0, 2]}}, "class n1 has image 2 of 2"),
    "rows are huge": ({"class_dict": {"n1": [1 << 80]}}, "expected whole numbers"),
    "rows double": ({"class_dict": {"n1": doubling(50)}}, "expected a list of numbers"),
    "names are tuples": ({"class_dict": {("n", "1"): [0]}}, "expected a name"),
    "long name": ({"class_dict": {"n" * 1000: [0]}}, "a BytesInFile as a key is not data"),
    "images are a list": ({"image_data": doubling(50)}, "expected a list of numbers"),
    "images have no side": ({"image_data": np.zeros((2, 0, 8, 3), np.uint8)}, "expected uint8"),
    "images are fractions": ({"image_data": np.zeros((2, 8, 8, 3), np.float32)}, "expected uint8"),
    "images are flat": ({"image_data": np.zeros((2, 192), np.uint8)}, r"expected uint8 \[N, H, W, 3\]"),
    "images are a number": ({"image_data": 5}, "expected an array, found int"),
}


@pytest.mark.parametrize(("changes", "says"), MINI.values(), ids=MINI)
def test_pickle_of_other_types(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    content = {"image_data": np.zeros((2, 8, 8, 3), np.uint8), "class_dict": {"n1": [0, 1]}, **changes}
    for split in ("train", "val", "test"):
        copies.python3_pickle(tmp_path / f"mini-imagenet-cache-{split}.pkl", content)
    refused("mini-imagenet", tmp_path, rf"mini-imagenet-cache-train\.pkl.*{says}", partial=True)


def test_names_of_classes_and_entries(tmp_path: Path) -> None:
    content = {"image_data": np.zeros((2, 8, 8, 3), np.uint8), "class_dict": {"n1": [0], b"n1": [1]}}
    for split in ("train", "val", "test"):
        copies.python3_pickle(tmp_path / f"mini-imagenet-cache-{split}.pkl", content)
        copies.python3_pickle(tmp_path / f"FC100_{split}.pickle", {"data": 1, "tables": 2})
    refused("mini-imagenet", tmp_path, "two classes have the same name: 'n1'", partial=True)
    refused("fc100", tmp_path, r"FC100_train\.pickle has no 'labels'; it has data, tables")


def test_cifar_with_other_types(tmp_path: Path) -> None:
    for name in ("train", "test"):
        content = {b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": 7}
        (tmp_path / name).write_bytes(pickle.dumps(content, protocol=2))
    (tmp_path / "meta").write_bytes(pickle.dumps({b"fine_label_names": [b"apple"]}, protocol=2))
    assert "expected an array" in refused("cifar-fs", tmp_path, "train", partial=True)
    for labels, says in (([0, -1], "label -1 is used"), ([0, 1], "label 1 is used"), ([0], "2 images but 1")):
        content = {b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": labels}
        for name in ("train", "test"):
            (tmp_path / name).write_bytes(pickle.dumps(content, protocol=2))
        assert says in refused("cifar-fs", tmp_path, "train|meta", partial=True)
