"""Find and end child processes through /proc: all that a case has started must be gone after it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Make this process the parent of orphaned grandchildren, so that none can hide."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def descendants(pid: int) -> list[int]:
    """Return children, their children and so on, without zombies."""
    found = []
    for child in _children(pid):
        if not _is_zombie(child):
            found.append(child)
        found += descendants(child)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def command_line(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "gone"
    return b" ".join(words).decode(errors="replace").strip()[:120]


def reap() -> None:
    """Collect the children that have ended, adopted ones too."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def end_all(grace: float) -> list[str]:
    """Wait for every child to end by itself; the command lines of those that had to be killed."""
    deadline = time.monotonic() + grace
    reap()
    while (left := descendants(os.getpid())) and time.monotonic() < deadline:
        time.sleep(0.02)
        reap()
    lines = [command_line(pid) for pid in left]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while descendants(os.getpid()):
        reap()
        time.sleep(0.01)
    reap()
    return lines
