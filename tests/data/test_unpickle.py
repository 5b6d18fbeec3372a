"""Untrusted pickles give data or an error, run nothing, and leave long strings on disk."""

from __future__ import annotations

import collections
import os
import pickle
import pickletools
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from firststep.data import open_dataset
from firststep.data.pickled_values import PickledArray, as_array, as_bytes
from firststep.data.unpickle import load_pickle
from firststep.errors import FirststepError
from pickles import newest_pickle, python2_pickle, python3_pickle

PLAIN = (
    type(None),
    bool,
    int,
    float,
    str,
    bytes,
    list,
    tuple,
    dict,
    set,
    frozenset,
    np.generic,
    PickledArray,
)
"""All types that a pickle may hold."""


class Creates:
    """A real attack: Python's unpickler would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch '{self.path}'",)


class Evaluates(Creates):
    def __reduce__(self) -> Any:
        return eval, (f"__import__('os').mkdir({str(self.path)!r})",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("attack", [Creates, Evaluates])
def test_malicious_pickle_is_refused_and_runs_nothing(
    attack: type[Creates], protocol: int, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    harmful = pickle.dumps({"data": [attack(proof)]}, protocol=protocol)
    pickle.loads(harmful)
    assert proof.exists()  # the attack works
    proof.rmdir() if proof.is_dir() else proof.unlink()
    (tmp_path / "harmful.pkl").write_bytes(harmful)
    with pytest.raises(FirststepError, match=r"harmful\.pkl.*refused"):
        load_pickle(tmp_path / "harmful.pkl")
    assert not proof.exists()


def test_malicious_pickle_in_a_dataset(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    for split in ("train", "val", "test"):
        (tmp_path / f"mini-imagenet-cache-{split}.pkl").write_bytes(pickle.dumps(Creates(proof), protocol=2))
    with pytest.raises(FirststepError, match=r"wants to use posix\.system, which is not data"):
        open_dataset("mini-imagenet", tmp_path)
    assert not proof.exists()


def test_object_arrays_are_refused(tmp_path: Path) -> None:
    python3_pickle(tmp_path / "a.pkl", np.array([{}, None], dtype=object))
    with pytest.raises(FirststepError, match=r"a\.pkl"):
        load_pickle(tmp_path / "a.pkl")


def same(a: Any, b: Any) -> bool:
    if isinstance(a, PickledArray | np.ndarray):
        a = as_array(a, "")
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(b, bytes | bytearray):
        return as_bytes(a, "") == bytes(b)
    if isinstance(b, dict):
        return list(a) == list(b) and all(same(x, y) for x, y in zip(a.values(), b.values(), strict=True))
    if isinstance(b, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=40)
    | st.binary(max_size=600)
    | hnp.arrays(st.sampled_from(["u1", "<i4", ">i8", "f4", "S3"]), hnp.array_shapes(max_side=9)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(value=values, write=st.sampled_from([python3_pickle, newest_pickle]))
def test_data_comes_back(value: Any, write: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.pkl"
    write(path, value)
    assert same(load_pickle(path), value)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_other_containers_and_fortran_order(protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    fortran = np.asfortranarray(np.arange(600, dtype=np.float32).reshape(20, 30))
    value = {
        "set": {1, 2},
        "frozen": frozenset([3]),
        "ordered": collections.OrderedDict(a=1),
        "default": collections.defaultdict(list, a=[1]),
        "scalar": np.int64(7),
        "long": 1 << 70,
        "bytearray": bytearray(b"\xff\0x"),
        "fortran": fortran,
        "twice": [fortran, fortran],
    }
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    loaded = load_pickle(path)
    np.testing.assert_array_equal(as_array(loaded["fortran"], path), fortran)
    np.testing.assert_array_equal(as_array(loaded["twice"][1], path), fortran)
    for key in ("set", "frozen", "ordered", "default", "scalar", "long", "bytearray"):
        assert loaded[key] == value[key]


def test_python_2_strings_are_written_as_python_2_did(tmp_path: Path) -> None:
    """The helper that stands in for Python 2 writes the opcodes of Python 2."""
    python2_pickle(tmp_path / "a.pkl", [b"short", b"long" * 100])
    opcodes = {opcode.name for opcode, _, _ in pickletools.genops((tmp_path / "a.pkl").read_bytes())}
    assert {"SHORT_BINSTRING", "BINSTRING"} <= opcodes
    assert same(load_pickle(tmp_path / "a.pkl"), [b"short", b"long" * 100])


def test_long_things_stay_in_the_file(tmp_path: Path) -> None:
    """A 64 MB array and a list of 6 MB need next to no memory."""
    path = tmp_path / "big.pkl"
    newest_pickle(
        path,
        {
            "array": np.zeros((64, 1 << 20), np.uint8),
            "list": [bytes([i]) * (1 << 15) for i in range(200)],
        },
    )
    tracemalloc.start()
    content = load_pickle(path)
    array = as_array(content["array"], path)
    total = sum(as_bytes(item, path)[0] for item in content["list"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(array, np.memmap)
    assert total == sum(range(200))
    assert peak < 2 << 20


@given(cut=st.floats(0, 0.999))
def test_truncated_pickle(cut: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.pkl"
    whole = pickle.dumps({"data": np.zeros((9, 9), np.uint8), "labels": [1, 2, 3]}, protocol=2)
    path.write_bytes(whole[: int(cut * len(whole))])
    with pytest.raises(FirststepError, match=r"cut\.pkl"):
        load_pickle(path)


@given(junk=st.binary(max_size=200))
def test_junk_is_an_error_or_harmless_data(junk: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "junk.pkl"
    path.write_bytes(b"\x80\x02" + junk)
    try:
        found = load_pickle(path)
    except FirststepError as error:
        message = str(error)
    else:
        assert isinstance(found, PLAIN)
        return
    assert "junk.pkl" in message
    assert "\n" not in message
