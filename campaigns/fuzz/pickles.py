"""Pickles and npz files of datasets: damaged, spliced, made to run a program or to fill the memory."""

from __future__ import annotations

import io
import pickle
import struct
from pathlib import Path
from random import Random
from typing import Any

from campaigns.fuzz.case import Case, Sandbox
from campaigns.fuzz.copies import dataset_copies
from campaigns.fuzz.mutate import NASTY_VALUES, damaged

WRITERS = {
    "cifar-fs": ("cifar_pickles", "cifar_original"),
    "fc100": ("cifar_pickles",),
    "mini-imagenet": ("mini_cache", "mini_category_split"),
    "tiered-imagenet": ("tiered_png", "tiered_png_bytes", "tiered_npz"),
}
KEYS = (
    *("data", "labels", "fine_labels", "fine_label_names", "image_data", "class_dict", "catname2label"),
    *("label_specific", "label_specific_str"),
)
"""The entries of all layouts."""

PAIRS_IN_A_SET = b"\x8fK\x01)" + b"\x85" * 200_000 + b"s."
"""Opcodes that update a set as if it were a dictionary: hashing the deep value overflows the C stack."""


def case(rng: Random, sandbox: Sandbox) -> Case:
    dataset = rng.choice(list(WRITERS))
    writer = rng.choice(WRITERS[dataset])
    folder = sandbox.work / "own"
    folder.mkdir()
    write = getattr(dataset_copies(), writer)
    _ = write(folder, dataset) if writer.startswith("cifar") else write(folder)
    path = rng.choice(sorted(p for p in folder.rglob("*") if p.is_file()))
    change = rng.choice((_bytes, _bytes, _bytes, _values, _values, _hostile, _hostile, _spliced, _whole))
    words = change(rng, path)
    flags = ["--partial", "--cache", "cache", "--sheet", "sheet.png", *rng.choice(([], ["--size", "8"]))]
    return Case(
        what=f"data {dataset}, {writer}, {path.name}: {words}",
        arguments=["data", dataset, "own", *flags],
        expected="good" if change is _whole else "any",
        writes=("cache", "sheet.png"),
    )


def _whole(rng: Random, path: Path) -> str:
    return "whole"


def _bytes(rng: Random, path: Path) -> str:
    path.write_bytes(damaged(rng, path.read_bytes()))
    return "damaged bytes"


def _values(rng: Random, path: Path) -> str:
    """Write a pickle of other values under some of its keys."""
    import numpy as np

    arrays: tuple[object, ...] = (
        *(np.zeros((3, 84, 84, 3), np.uint8), np.zeros((3, 0, 0, 3), np.uint8), np.zeros(0)),
        *(np.ones(2, np.float16), np.zeros((2, 3072), np.uint8), np.array(5), np.array(["a", "b"])),
        *(np.zeros((1, 1), np.complex64), np.arange(18) - 5, np.full(18, 2**62)),
        *(np.zeros((18, 2), np.int64), np.zeros((3, 84, 84, 3), ">i4"), b"\x89PNG", [b"\x89PNG"] * 18),
        *(list(range(18)), {b"n": [0, 1, 99]}, {b"n": [-1]}, {3: [0]}, {"a": None}),
    )

    def choose() -> object:
        return rng.choice((*NASTY_VALUES, *arrays, *arrays))

    content: object
    if rng.random() < 0.2:
        content = choose()
    else:
        names = rng.sample(KEYS, rng.randrange(1, len(KEYS)))
        content = {name.encode() if rng.random() < 0.5 else name: choose() for name in (*names, *KEYS[:3])}
    path.write_bytes(pickle.dumps(content, protocol=rng.choice((2, 4, 5))))
    return "other values"


class _Call:
    """An object that ``pickle.load`` would turn into a call."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.reduced = function, arguments

    def __reduce__(self) -> Any:
        return self.reduced


def _hostile(rng: Random, path: Path) -> str:
    import os

    what = rng.choice(
        ("program", "shape", "deep", "itself", "long", "memo", "bytes", "import", "marks", "repeat")
    )
    head = b"\x80\x02"
    if what == "program":
        call = rng.choice((_Call(os.system, "touch escaped"), _Call(eval, "open('escaped', 'w')")))
        path.write_bytes(pickle.dumps({"data": call}, protocol=rng.choice((0, 1, 2, 4, 5))))
    elif what == "shape":
        path.write_bytes(_array_bomb(rng))
    elif what == "deep":
        path.write_bytes(head + b"]" * 100_000 + b"a" * 99_999 + b".")
    elif what == "itself":
        path.write_bytes(head + b"]q\x00h\x00a.")
    elif what == "long":
        digits = rng.choice((5_000, 200_000))
        path.write_bytes(head + b"L" + b"9" * digits + b"L\n.")
    elif what == "memo":
        path.write_bytes(head + b"h\xff." if rng.random() < 0.5 else head + b"Np99999999999999999999\n0g1\n.")
    elif what == "bytes":
        path.write_bytes(b"\x80\x04\x8e" + struct.pack("<Q", rng.choice((2**40, 2**63, 2**64 - 1))) + b"x.")
    elif what == "import":
        name = rng.choice(
            (
                b"os\nsystem\n",
                b"builtins\neval\n",
                b"numpy\nload\n",
                b"firststep\ncli\n",
                b"\n\n",
                b"\xff\n\xff\n",
            )
        )
        path.write_bytes(head + b"c" + name + b"(X\x05\x00\x00\x00touchtR.")
    elif what == "marks":
        path.write_bytes(
            head
            + rng.choice(
                (b"t.", b"u.", b"s.", b"((((.", b"0.", b".", b"R.", b"b.", b"N" * 9 + b"u.", PAIRS_IN_A_SET)
            )
        )
    else:
        path.write_bytes(head + b"cbuiltins\nlist\n(" + b"I10\ntR" + b".")
    return f"hostile: {what}"


def _array_bomb(rng: Random) -> bytes:
    """Return a pickled array of a few bytes that claims a shape of terabytes, or a negative one."""
    import numpy as np

    size = rng.choice((300, 8))
    data = pickle.dumps(
        {"data": np.zeros(size, np.uint8), "labels": [0], "image_data": np.zeros(size, np.uint8)}, 2
    )
    whole = pickle.dumps(size, 2)[2:-1]
    shape = rng.choice((2**31 - 1, 2**62, -1, 0))
    return data.replace(whole, pickle.dumps(shape, 2)[2:-1])


def _spliced(rng: Random, path: Path) -> str:
    """Join two files of the dataset, or change the directory or the array of an npz."""
    data = path.read_bytes()
    others = sorted(p for p in path.parent.iterdir() if p.is_file())
    other = rng.choice(others).read_bytes()
    at = rng.randrange(len(data))
    if data[:2] == b"PK" and rng.random() < 0.7:
        changed = bytearray(data)
        directory = data.find(b"PK\x01\x02")
        field = directory + rng.choice((10, 20, 24, 42))
        changed[field : field + 4] = struct.pack("<I", rng.choice((0, 1, len(data), 2**31, at)))
        path.write_bytes(bytes(changed))
        return "another directory"
    if data[:2] == b"PK":
        path.write_bytes(_other_npz(rng))
        return "another array"
    path.write_bytes(data[:at] + other[rng.randrange(len(other)) :])
    return "spliced"


def _other_npz(rng: Random) -> bytes:
    import numpy as np

    file = io.BytesIO()
    kinds = (
        np.zeros((18, 84, 84, 3)),
        np.zeros((18, 84, 84, 3), np.uint8),
        np.array([{}], dtype=object),
        np.zeros(0),
    )
    save: Any = rng.choice((np.savez, np.savez_compressed))
    save(file, **{rng.choice(("images", "data")): rng.choice(kinds)})
    data = file.getvalue()
    header = data.find(b"'shape': (")
    if rng.random() < 0.5 and header > 0:
        shape = rng.choice((b"(-1, 84, 84, 3)", b"(9999999,84,84,)", b"(1,)           ", b"((((((((((((((("))
        data = data[: header + 9] + shape + data[header + 9 + len(shape) :]
    return data
