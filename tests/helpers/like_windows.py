"""Windows and macOS as far as Linux can pretend to be them: ``python -m like_windows LINES``.

LINES is JSON: a list of command lines, which run one after the other in this process. From the import on:

- ``/proc`` and ``/sys`` cannot be read; ``os`` and ``signal`` lack what Windows lacks; ``fcntl`` is not used;
- a file that this process has open or mapped cannot be renamed, replaced or removed;
- names with the characters that Windows forbids, or of its devices, cannot be created;
- two names that differ in case alone cannot stand in one folder (macOS too).

Worker processes of multiprocessing import the main module, so the same holds in them.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import sys
import types
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

FORBIDDEN = re.compile(r'[<>:"|?*\x00-\x1f]|[. ]$')
DEVICE = re.compile(r"(?i)^(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
MISSING_OF_OS = ("fork", "sched_getaffinity", "sysconf", "setsid", "killpg")
MISSING_OF_SIGNAL = ("pthread_sigmask", "SIGHUP", "SIGUSR1", "alarm")
_busy = False


def simulate(folder: Path) -> None:
    """Make this process like one on Windows; rules for files hold below ``folder``."""
    import torch  # noqa: F401 (reads /proc and takes os.fork for granted at import)

    import firststep.utils.files as files

    files.sys = types.SimpleNamespace(platform="win32")  # type: ignore[attr-defined]
    del files.fcntl  # type: ignore[attr-defined]
    for name in MISSING_OF_OS:
        if hasattr(os, name):
            delattr(os, name)
    for name in MISSING_OF_SIGNAL:
        if hasattr(signal, name):
            delattr(signal, name)
    resource_tracker._HAVE_SIGMASK = False  # type: ignore[attr-defined]
    sys.addaudithook(lambda event, values: _audit(event, values, os.fspath(folder.resolve())))


def _audit(event: str, values: tuple[Any, ...], folder: str) -> None:
    global _busy
    if _busy or event not in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"):
        return
    _busy = True
    try:
        paths = [
            os.path.abspath(os.fspath(path)) for path in values[:2] if isinstance(path, str | os.PathLike)
        ]
        if event == "open":
            paths = paths[:1]
        for path in paths:
            if event == "open" and path.startswith(("/proc/", "/sys/")):
                raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
            if path.startswith(folder):
                _check(event, values, path)
    finally:
        _busy = False


def _check(event: str, values: tuple[Any, ...], path: str) -> None:
    name = os.path.basename(path)
    if event in ("os.rename", "os.remove") and not name.endswith(".lock") and path in _in_use():
        raise PermissionError(errno.EACCES, "another process uses the file", path)
    creates = event in ("os.rename", "os.mkdir") or (event == "open" and _writes(values))
    if creates and (FORBIDDEN.search(name) or DEVICE.match(name)):
        raise OSError(errno.EINVAL, f"Windows refuses the name {name!r}", path)
    if creates and os.path.isdir(parent := os.path.dirname(path)):
        same = [each for each in os.listdir(parent) if each.lower() == name.lower() and each != name]
        if same:
            raise FileExistsError(errno.EEXIST, f"{name!r} and {same[0]!r} are one name", path)


def _writes(values: tuple[Any, ...]) -> bool:
    mode, flags = values[1], values[2]
    return bool(set(mode) & set("wax+")) if isinstance(mode, str) else bool(flags & os.O_CREAT)


def _in_use() -> set[str]:
    """Files that this process has open or mapped."""
    opened = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            opened.add(os.readlink(f"/proc/self/fd/{number}"))
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return opened | {
            line.split(maxsplit=5)[5].strip() for line in maps if line.count(" ") and "/" in line
        }


def lines() -> Iterator[list[str]]:
    yield from json.loads(sys.argv[1])


simulate(Path.cwd())

if __name__ == "__main__":
    from firststep.cli import main

    for words in lines():
        print("$ firststep", *words, flush=True)
        if status := main(words):
            raise SystemExit(f"firststep {' '.join(words)} ended with {status}")
