"""Open regular files only: reading a pipe blocks, and a link may lead nowhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from firststep.errors import FirststepError


def is_regular(path: Path | str) -> bool:
    """Return whether this is a regular file, not a folder, pipe, device or link to nothing."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def require_regular(path: Path | str, name: str | None = None) -> os.stat_result:
    """Return the status of a regular file; refuse anything else. Messages call it ``name``."""
    name = name or str(path)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        lost = "is a link to a file that does not exist" if os.path.islink(path) else "does not exist"
        raise FirststepError(f"{name} {lost}") from None
    except (OSError, ValueError) as error:
        raise FirststepError(f"{name} cannot be read ({getattr(error, 'strerror', error)})") from None
    if stat.S_ISDIR(status.st_mode):
        raise FirststepError(f"{name} is a folder, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise FirststepError(f"{name} is a pipe, socket or device, not a file")
    return status


def open_regular(path: Path | str, name: str | None = None) -> BufferedReader:
    """Open a regular file for reading; refuse anything else, because opening it could block for ever."""
    require_regular(path, name)
    try:
        return open(path, "rb")
    except OSError as error:
        raise FirststepError(f"{name or path} cannot be read ({error.strerror})") from None


def entries(folder: Path) -> list[Path]:
    """Return the entries of a folder sorted by name, without hidden ones."""
    try:
        return sorted(Path(entry.path) for entry in os.scandir(folder) if not entry.name.startswith("."))
    except OSError as error:
        raise FirststepError(f"cannot read the folder {folder} ({error.strerror})") from None


@contextmanager
def readable_or_refused() -> Iterator[None]:
    """Translate errors of folders that may be listed but not entered."""
    try:
        yield
    except OSError as error:
        raise FirststepError(
            f"cannot read {error.filename or 'the data'} ({error.strerror or error})"
        ) from None


def expanded(path: Path | str) -> Path:
    """Return the path with ``~`` replaced by the home folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # ~somebody
        raise FirststepError(f"{path} does not exist: there is no such user") from None
