"""Lock files between processes; the operating system releases a lock when its process dies.

What a held lock means is for the caller to say: nothing here raises an error for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from firststep.utils.extras import extra


def try_lock(path: Path) -> AbstractContextManager[object] | None:
    """The lock, acquired and to be released by leaving its ``with`` block; None if another process has it."""
    with extra("cli", "a lock between processes"):
        from filelock import FileLock, Timeout

    try:
        return FileLock(path).acquire(timeout=0)
    except Timeout:
        return None


def is_locked(path: Path) -> bool | None:
    """Whether a process has the lock; None where the system does not tell.

    To try it would be in the way of a process that takes it at that moment; Linux has a list.
    """
    try:
        number = path.stat().st_ino
    except OSError:
        return False
    try:
        held = Path("/proc/locks").read_text("ascii").split("\n")
    except OSError:
        return None
    # "1: FLOCK  ADVISORY  WRITE 712 08:01:136478 0 EOF"; devices differ between file systems' own views.
    return any(
        line.split()[5].rpartition(":")[2] == str(number)
        for line in held
        if "FLOCK" in line and "->" not in line
    )


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock within the block; ``on_wait`` is called once if another process has it first."""
    with extra("cli", "a lock between processes"):
        from filelock import FileLock

    lock = try_lock(path)
    if lock is None:
        if on_wait is not None:
            on_wait()
        lock = FileLock(path).acquire()
    with lock:
        yield
