"""Files and folders of a dataset that are what they seem: a pipe would hang, a link may lead nowhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from firststep.errors import FirststepError


def is_regular(path: Path | str) -> bool:
    """Whether this is a file with content, as opposed to a folder, pipe, device or link to nothing."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def require_regular(path: Path | str, name: str | None = None) -> os.stat_result:
    """``name`` is what the error calls it."""
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
    """Opened for reading; what is no regular file is not opened, because that could wait for ever."""
    require_regular(path, name)
    try:
        return open(path, "rb")
    except OSError as error:
        raise FirststepError(f"{name or path} cannot be read ({error.strerror})") from None


def entries(folder: Path) -> list[Path]:
    """What is in a folder, hidden entries left out, in the order of their names."""
    try:
        return sorted(Path(entry.path) for entry in os.scandir(folder) if not entry.name.startswith("."))
    except OSError as error:
        raise FirststepError(f"cannot read the folder {folder} ({error.strerror})") from None


@contextmanager
def readable_or_refused() -> Iterator[None]:
    """Around looking for files: a folder that may be listed but not entered shows in many places."""
    try:
        yield
    except OSError as error:
        raise FirststepError(
            f"cannot read {error.filename or 'the data'} ({error.strerror or error})"
        ) from None


def expanded(path: Path | str) -> Path:
    """With the user's home for ``~``."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # ~somebody
        raise FirststepError(f"{path} does not exist: there is no such user") from None
