"""Keep a run's identity in an external store in its folder, so that a resumed run continues there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from firststep.utils import read_bytes, write_text


def remembered(path: Path, make: Callable[[], str]) -> str:
    """Return the text of a file; create the file with ``make`` if it is missing."""
    if not path.exists():
        write_text(path, make() + "\n")
    return read_bytes(path).decode().strip()
