"""Compare the contents of a folder before and after a command."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

Snapshot = dict[bytes, str]
"""{path relative to the folder: what is there}; as bytes, because a name may be in no encoding"""

TEMPORARY = re.compile(
    rb"\.tmp(/|$)|(^|/)tmp[a-z0-9_]{8}(/|$)|(^|/)\.[^/]+\.[a-z0-9_]{8}(/|$)"  # Python's mkstemp, mkdtemp
    rb"|(^|/)\.tmp[A-Za-z0-9]{6}$"  # Rust's, within safetensors
)
"""Names of temporary files: any ending in .tmp, and those that the libraries make up."""


def take(folder: Path) -> Snapshot:
    """Return every file, folder and link below, with a digest of each file's bytes."""
    root = os.fsencode(folder)
    found: Snapshot = {}
    for here, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(here, name)
            found[os.path.relpath(path, root)] = _what(path)
    return found


def _what(path: bytes) -> str:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return f"link to {os.readlink(path)!r}"
    if stat.S_ISDIR(mode):
        return "folder"
    if not stat.S_ISREG(mode):
        return f"special {stat.S_IFMT(mode):o}"  # a FIFO must not be opened
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def temporary_files(after: Snapshot, before: Snapshot | None = None) -> list[str]:
    """Return the names of temporary files that were not there before."""
    return [_text(name) for name in after if TEMPORARY.search(name) and name not in (before or {})]


def lost(before: Snapshot, after: Snapshot) -> list[str]:
    """Return the names that are gone or have other bytes."""
    return [_text(name) for name, what in before.items() if after.get(name) != what]


def appeared(before: Snapshot, after: Snapshot) -> list[str]:
    return [_text(name) for name in after if name not in before]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
