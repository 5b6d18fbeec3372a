"""Atomic writes: a crash, a kill or a full disk never leaves a half-written or lost file."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firststep.errors import FirststepError

if sys.platform != "win32":  # on Windows the files of killed processes stay
    import fcntl

SUFFIX = ".tmp"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` when the block ends without an error.

    Until then the old file stays unchanged. After an error the temporary file is removed. Temporary files
    that killed processes left beside ``path`` are removed too.
    """
    _remove(path.parent.glob(f".{glob.escape(path.name)}.*{SUFFIX}"))
    try:
        handle, temporary = _locked_temporary(path)
    except OSError as error:
        raise FirststepError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        yield temporary
        with open(temporary, "rb+") as file:  # Windows flushes only files that are open for writing
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise FirststepError(
            f"cannot write {path}: {error.strerror or error}; the old file is unchanged"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def _locked_temporary(path: Path) -> tuple[int | None, Path]:
    """Make a file beside ``path``; return its path and a handle that locks it while this process lives.

    Windows refuses to replace a file that is open, so there the handle is None.
    """
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=SUFFIX, dir=path.parent)
        if sys.platform == "win32":
            os.close(handle)
            return None, Path(name)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(name):  # otherwise another process removed it as a leftover before it was locked
            return handle, Path(name)
        os.close(handle)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of killed processes from a folder and its subfolders."""
    _remove(folder.rglob(f".*{SUFFIX}"))


def _remove(candidates: Iterator[Path]) -> None:
    if sys.platform == "win32":
        return
    for path in candidates:
        with contextlib.suppress(OSError):  # already removed, a folder, in use, or no permission
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8, atomically."""
    try:
        # File names may hold bytes that are not UTF-8. They are written as they were read.
        content = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate, as in a damaged JSON file
        content = text.encode("utf-8", "backslashreplace")
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def make_folder(folder: Path) -> None:
    """Make the folder and its parents; it may exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FirststepError(f"cannot make the folder {folder}: {error.strerror or error}") from None


def check_folder_writable(folder: Path) -> None:
    """Refuse an output folder that cannot be made or written to, before hours of work; do not make it."""
    existing = next(each for each in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(each))
    try:
        # Write a file, because permission bits are unreliable on network drives and for the superuser.
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise FirststepError(f"cannot write to the folder {folder}: {error.strerror or error}") from None


def check_file_writable(path: Path, *endings: str) -> None:
    """Refuse an output file that cannot be written, or whose name has none of the ``endings``."""
    if path.is_dir():
        raise FirststepError(f"cannot write {path}: it is a folder")
    if endings and path.suffix.lower() not in endings:
        raise FirststepError(f"cannot write {path}: its name must end in {' or '.join(endings)}")
    check_folder_writable(path.parent)
