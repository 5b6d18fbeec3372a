"""Which processes are alive, from /proc: for tests that kill some."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Return whether a process lives; a zombie is dead."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def workers_of(pid: int) -> list[int]:
    """Return the worker processes that multiprocessing has started for a process."""
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def all_gone(pids: Iterable[int], seconds: float) -> bool:
    """Return whether all of them end within ``seconds``."""
    left, deadline = set(pids), time.monotonic() + seconds
    while left and time.monotonic() < deadline:
        left = {pid for pid in left if is_alive(pid)}
        time.sleep(0.05)
    return not left
