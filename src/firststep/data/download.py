"""Fetching the published archives, where their authors offer a direct address."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from firststep.data.reading import how_to_get
from firststep.data.registry import Entry, File
from firststep.errors import FirststepError

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, bytes done, bytes in all)."""


def download(entry: Entry, folder: Path, progress: Progress | None = None) -> list[Path]:
    """Put the dataset's archives into the folder; those already there and right are kept."""
    if not entry.files or any(file.url is None for file in entry.files):
        raise FirststepError(f"cannot download {entry.name}: {how_to_get(entry)}, then: {_next_step(entry)}")
    return [_fetch(file, folder, progress) for file in entry.files]


def _next_step(entry: Entry) -> str:
    return f"firststep data {entry.name} PATH"


def _fetch(file: File, folder: Path, progress: Progress | None) -> Path:
    import pooch  # slow to import, and rarely needed

    target = folder / file.name
    if target.exists():
        # pooch would replace a file with another checksum; it may be somebody's own copy.
        actual = _md5(target)
        if actual == file.md5:
            return target
        raise FirststepError(
            f"{target} exists but its md5 is {actual}, not the official {file.md5}; "
            "move it away to download anew, or leave --download out to use it"
        )
    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(
            file.url,
            known_hash=f"md5:{file.md5}",
            fname=file.name,
            path=folder,
            downloader=pooch.HTTPDownloader(progressbar=_Bar(file.name, progress), timeout=30),
        )
    except ValueError:
        raise FirststepError(
            f"{file.url} gave another file than expected (md5 is not {file.md5}); "
            "nothing was kept, try again later"
        ) from None
    except OSError as error:  # includes all of requests' errors
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FirststepError(f"no space left in {folder} for {file.name}; nothing was kept") from None
        if isinstance(error, PermissionError):
            raise FirststepError(f"cannot write to {folder} (permission denied)") from None
        raise FirststepError(
            f"download of {file.url} failed ({_short(error)}); nothing was kept, try again"
        ) from None
    return target


def _md5(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _short(error: BaseException) -> str:
    """The innermost reason: requests wraps it several times, each with all the others' text."""
    while error.args and isinstance(error.args[-1], BaseException):
        error = error.args[-1]
    reason: Any = getattr(error, "reason", None)
    return _short(reason) if isinstance(reason, BaseException) else str(error)


class _Bar:
    """What pooch expects of a progress bar, handing the numbers on."""

    def __init__(self, name: str, progress: Progress | None) -> None:
        self.name, self.progress = name, progress
        self.total = self.done = 0

    def __bool__(self) -> bool:
        return True

    def update(self, count: int) -> None:
        self.done = min(self.done + count, self.total)
        if self.progress:
            self.progress(f"downloading {self.name}", self.done, self.total)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        pass
