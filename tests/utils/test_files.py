"""Files that a killed process left behind are removed; files being written are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from firststep.errors import FirststepError
from firststep.utils import (
    check_file_writable,
    check_folder_writable,
    remove_leftovers,
    replacing,
    write_text,
)

WRITER = """
import sys
from pathlib import Path
from firststep.utils.files import replacing
with replacing(Path(sys.argv[1])) as temporary:
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path: Path) -> subprocess.Popen[str]:
    """Start a process that is in the middle of writing ``tmp_path / "a[1].txt"``."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "a[1].txt")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("how", ["the next write of the file", "the next lock of the folder"])
def test_leftovers_of_the_dead_go(writer: subprocess.Popen[str], how: str, tmp_path: Path) -> None:
    with writer:
        os.kill(writer.pid, signal.SIGKILL)
    assert len(names(tmp_path)) == 1
    (tmp_path / "b.txt").write_text("stays")
    if how == "the next write of the file":
        write_text(tmp_path / "a[1].txt", "new")
        assert names(tmp_path) == ["a[1].txt", "b.txt"]
    else:
        remove_leftovers(tmp_path)
        assert names(tmp_path) == ["b.txt"]


def test_what_the_living_write_stays(writer: subprocess.Popen[str], tmp_path: Path) -> None:
    with writer:
        remove_leftovers(tmp_path)
        write_text(tmp_path / "a[1].txt", "of another process")
        assert len(names(tmp_path)) == 2
        writer.communicate("", timeout=240)
    assert writer.returncode == 0
    assert names(tmp_path) == ["a[1].txt"]
    assert (tmp_path / "a[1].txt").read_text() == ""


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(FirststepError), replacing(path) as temporary:
        temporary.write_text((tmp_path / "absent").read_text())
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_outputs_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for attempt in (check_folder_writable, check_file_writable):
        with pytest.raises(FirststepError, match="cannot write to the folder"):
            attempt(tmp_path / "file" / "below")
    with pytest.raises(FirststepError, match="it is a folder"):
        check_file_writable(tmp_path)
    with pytest.raises(FirststepError, match=r"must end in \.png or \.svg"):
        check_file_writable(tmp_path / "x.txt", ".png", ".svg")
    with pytest.raises(FirststepError, match="cannot write"):
        write_text(tmp_path / "file" / "below", "text")
    check_file_writable(tmp_path / "new" / "x.png", ".png")
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "kept"
