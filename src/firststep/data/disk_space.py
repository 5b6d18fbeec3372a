"""Room on the disk, asked for before hours of work end in an error."""

from __future__ import annotations

import shutil
from pathlib import Path

from firststep.errors import FirststepError

RESERVE = 64 << 20
"""Bytes that are left free: a disk filled to the brim stops other programs."""


def free_space(folder: Path) -> int:
    """Bytes that may still be written there."""
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
