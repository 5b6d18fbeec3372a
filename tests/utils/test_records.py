"""The reader of records refuses what does not fit, and names the file and the field."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from firststep.errors import FirststepError
from firststep.utils import check_format, read_record, to_record


@dataclass
class Inner:
    steps: int
    rate: float = 0.1


@dataclass
class Outer:
    inner: Inner
    folder: Path | None = None
    values: list[list[float]] = field(default_factory=list)


def test_values_come_back_with_their_types() -> None:
    read = to_record({"inner": {"steps": 3, "rate": 1}, "folder": "a/b"}, Outer, "x.json")
    assert read == Outer(Inner(3, 1.0), Path("a/b"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"inner": {"steps": 2.5}}, "x.json: inner.steps: expected int, got float"),
        ({"inner": {"steps": True}}, "x.json: inner.steps: expected int, got bool"),
        ({"inner": None}, "x.json: inner: expected object, got null"),
        ({}, "x.json: inner is missing"),
        ({"inner": {}}, "x.json: inner: steps is missing"),
        ({"inner": {"steps": 1}, "folder": 3}, "x.json: folder: expected a path, got number"),
        ({"inner": {"steps": 1}, "values": [[1.0], ["a"]]}, "x.json: values[1][0]: expected float, got str"),
        ([], "x.json: expected object, got array"),
    ],
)
def test_the_field_at_fault_is_named(value: object, message: str) -> None:
    with pytest.raises(FirststepError) as caught:
        to_record(value, Outer, "x.json")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not valid JSON"),
        (b'{"inner": "\xff"}', "is not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_files_that_are_no_json(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(FirststepError, match=message):
        read_record(path, Outer)


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.json")
    with pytest.raises(FirststepError, match="not a regular file"):
        read_record(tmp_path / "x.json", Outer)
    with pytest.raises(FirststepError, match=r"cannot read .*absent.json: No such file"):
        read_record(tmp_path / "absent.json", Outer)


def test_formats() -> None:
    known = ("firststep-run-2", "firststep-run-1")
    assert check_format({"format": "firststep-run-2"}, "x", *known) == "firststep-run-2"
    assert check_format({}, "x", *known) == "firststep-run-1"
    with pytest.raises(FirststepError, match="install a newer one"):
        check_format({"format": "firststep-run-3"}, "x", *known)
    with pytest.raises(FirststepError, match="another kind of file"):
        check_format({"format": "firststep-evaluation-2"}, "x", *known)
    with pytest.raises(FirststepError, match="it holds a list"):
        check_format([], "x", *known)
