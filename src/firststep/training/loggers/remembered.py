"""The identity of a run in a store elsewhere, kept in its folder so that a resumed run goes on there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from firststep.utils import read_bytes, write_text


def remembered(path: Path, make: Callable[[], str]) -> str:
    """Return the text of a file, which is made with ``make`` if it is not there."""
    if not path.exists():
        write_text(path, make() + "\n")
    return read_bytes(path).decode().strip()
