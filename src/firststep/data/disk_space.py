"""Check for free disk space before hours of work end in an error."""

from __future__ import annotations

import shutil
from pathlib import Path

from firststep.errors import FirststepError

RESERVE = 64 << 20
"""Bytes that stay free, because a full disk stops other programs."""


def free_space(folder: Path) -> int:
    """Return the number of bytes that may still be written to the disk of a folder."""
    return max(0, shutil.disk_usage(folder).free - RESERVE)


def require_space(folder: Path, needed: int, what: str) -> None:
    free = free_space(folder)
    if needed > free:
        raise FirststepError(
            f"{what} needs {readable(needed)} in {folder}, where {readable(free)} are free; free some, or "
            "choose another folder with `cache`"
        )


def readable(count: int) -> str:
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1000:.0f} kB"
