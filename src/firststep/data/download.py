"""Download published archives whose authors offer a direct address."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path
from typing import Any

from firststep.data.cache import ProgressCallback
from firststep.data.dataset_info import DatasetInfo, PublishedFile
from firststep.data.reading import how_to_get
from firststep.data.regular_files import open_regular
from firststep.errors import FirststepError
from firststep.utils import check_folder_writable, make_folder, replacing
from firststep.utils.extras import extra


def download_files(info: DatasetInfo, folder: Path, progress: ProgressCallback | None = None) -> list[Path]:
    """Download the archives of a dataset into a folder, except those that are there with the right checksum.

    Examples:
        >>> from firststep.data import download_files, get_dataset_info
        >>> download_files(get_dataset_info("omniglot"), Path("data"))  # doctest: +SKIP
    """
    if not info.files or any(file.url is None for file in info.files):
        raise FirststepError(f"cannot download {info.name}: {how_to_get(info)}, then: {_next_step(info)}")
    return [_fetch(file, folder, progress) for file in info.files]


def _next_step(info: DatasetInfo) -> str:
    return f"firststep data {info.name} PATH"


def _fetch(file: PublishedFile, folder: Path, progress: ProgressCallback | None) -> Path:
    with extra("cli", "a download"):
        import pooch  # slow to import, and rarely needed

    target = folder / file.name
    if target.exists():
        # pooch would replace a file with another checksum, which may be the user's own.
        actual = _md5(target)
        if actual == file.md5:
            return target
        raise FirststepError(
            f"{target} exists but its md5 is {actual}, not the official {file.md5}; "
            "move it away to download it again, or use it as it is, without a download"
        )
    make_folder(folder)
    check_folder_writable(folder)
    # The temporary files of pooch stay after a kill; these are removed by the next download.
    with replacing(target) as temporary:
        fetch = pooch.HTTPDownloader(progressbar=_Bar(file.name, progress), timeout=30)
        try:
            fetch(file.url, str(temporary), None)
        except OSError as error:  # includes all of requests' errors
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise FirststepError(f"no space left in {folder} for {file.name}; nothing was kept") from None
            raise FirststepError(
                f"download of {file.url} failed ({_short(error)}); nothing was kept, try again"
            ) from None
        if _md5(temporary) != file.md5:
            raise FirststepError(
                f"{file.url} gave another file than expected (md5 is not {file.md5}); "
                "nothing was kept, try again later"
            )
    return target


def _md5(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _short(error: BaseException) -> str:
    """Return the innermost reason: requests wraps it several times and repeats the text each time."""
    while error.args and isinstance(error.args[-1], BaseException):
        error = error.args[-1]
    reason: Any = getattr(error, "reason", None)
    return _short(reason) if isinstance(reason, BaseException) else str(error)


class _Bar:
    """A progress bar for pooch that passes its numbers on."""

    def __init__(self, name: str, progress: ProgressCallback | None) -> None:
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
