"""Pickles and npz files: with other values, made to run a program or to fill the memory, or spliced."""

from __future__ import annotations

import io
import os
import pickle
import struct
from random import Random
from typing import Any

from campaigns.fuzz.mutate import NASTY_VALUES, damaged

KEYS = (
    *("data", "labels", "fine_labels", "fine_label_names", "image_data", "class_dict", "catname2label"),
    *("label_specific", "label_specific_str"),
)
"""The entries of all layouts."""
IMPORTS = (b"os\nsystem", b"builtins\neval", b"numpy\nload", b"firststep\ncli", b"\n", b"\xff\n\xff")
OPCODES = (
    b"]" * 100_000 + b"a" * 99_999 + b".",
    b"]q\x00h\x00a.",
    *(b"L" + b"9" * digits + b"L\n." for digits in (5_000, 200_000)),
    *(b"h\xff.", b"Np99999999999999999999\n0g1\n."),
    *(b"\x8e" + struct.pack("<Q", length) + b"x." for length in (2**40, 2**63, 2**64 - 1)),
    *(b"c" + name + b"\n(X\x05\x00\x00\x00touchtR." for name in IMPORTS),
    *(b"t.", b"u.", b"s.", b"((((.", b"0.", b".", b"R.", b"b.", b"N" * 9 + b"u."),
    b"cbuiltins\nlist\n(I10\ntR.",
    # Update a set as if it were a dictionary: hashing the deep value overflows the C stack.
    b"\x8fK\x01)" + b"\x85" * 200_000 + b"s.",
)
"""Programs of few opcodes: deep, endless, without a stack, calling what they name."""


class _Call:
    """An object that ``pickle.load`` would turn into a call."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.reduced = function, arguments

    def __reduce__(self) -> Any:
        return self.reduced


def changed_pickle(rng: Random, data: bytes) -> bytes:
    """Return another pickle, damaged or hostile."""
    way = rng.choice(
        ("damaged", "damaged", "values", "values", "opcodes", "opcodes", "call", "shape", "spliced")
    )
    if way == "damaged":
        return damaged(rng, data)
    if way == "values":
        return pickle.dumps(_values(rng), protocol=rng.choice((2, 4, 5)))
    if way == "opcodes":
        return b"\x80\x04" + rng.choice(OPCODES)
    if way == "call":
        call = rng.choice((_Call(os.system, "touch escaped"), _Call(eval, "open('escaped', 'w')")))
        return pickle.dumps({"data": call}, protocol=rng.choice((0, 1, 2, 4, 5)))
    if way == "shape":
        return _array_bomb(rng)
    return data[: rng.randrange(len(data))] + data[rng.randrange(len(data)) :]


def _values(rng: Random) -> object:
    import numpy as np

    arrays: tuple[object, ...] = (
        *(np.zeros((3, 84, 84, 3), np.uint8), np.zeros((3, 0, 0, 3), np.uint8), np.zeros(0)),
        *(np.ones(2, np.float16), np.zeros((2, 3072), np.uint8), np.array(5), np.array(["a", "b"])),
        *(np.zeros((1, 1), np.complex64), np.arange(18) - 5, np.full(18, 2**62)),
        *(np.zeros((18, 2), np.int64), np.zeros((3, 84, 84, 3), ">i4"), b"\x89PNG", [b"\x89PNG"] * 18),
        *(list(range(18)), {b"n": [0, 1, 99]}, {b"n": [-1]}, {3: [0]}, {"a": None}),
    )

    def value() -> object:
        return rng.choice((*NASTY_VALUES, *arrays, *arrays))

    if rng.random() < 0.2:
        return value()
    names = (*rng.sample(KEYS, rng.randrange(1, len(KEYS))), *KEYS[:3])
    return {name.encode() if rng.random() < 0.5 else name: value() for name in names}


def _array_bomb(rng: Random) -> bytes:
    """Return a pickled array of a few bytes that claims a shape of terabytes, or a negative one."""
    import numpy as np

    size = rng.choice((300, 8))
    array = np.zeros(size, np.uint8)
    data = pickle.dumps({"data": array, "labels": [0], "image_data": array}, 2)
    shape = rng.choice((2**31 - 1, 2**62, -1, 0))
    return data.replace(pickle.dumps(size, 2)[2:-1], pickle.dumps(shape, 2)[2:-1])


def changed_npz(rng: Random, data: bytes) -> bytes:
    """Return an npz with other fields in its directory, another array, or another shape in its header."""
    import numpy as np

    way = rng.choice(("damaged", "directory", "array"))
    if way == "damaged":
        return damaged(rng, data)
    if way == "directory":
        field = data.find(b"PK\x01\x02") + rng.choice((10, 20, 24, 42))
        value = rng.choice((0, 1, len(data), 2**31, rng.randrange(len(data))))
        return data[:field] + struct.pack("<I", value) + data[field + 4 :]
    shape = (18, 84, 84, 3)
    arrays = (np.zeros(shape), np.zeros(shape, np.uint8), np.array([{}], dtype=object), np.zeros(0))
    file, save = io.BytesIO(), rng.choice((np.savez, np.savez_compressed))
    save(file, **{rng.choice(("images", "data")): rng.choice(arrays)})  # type: ignore[arg-type]
    data = file.getvalue()
    header = data.find(b"'shape': (")
    if rng.random() < 0.5 and header > 0:
        other = rng.choice((b"(-1, 84, 84, 3)", b"(9999999,84,84,)", b"(1,)           ", b"((((((((((((((("))
        data = data[: header + 9] + other + data[header + 9 + len(other) :]
    return data
