"""Lock files between processes; the operating system releases a lock when its process dies.

A lock that another process holds is not an error here: the caller decides what it means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from firststep.utils.extras import extra


def try_lock(path: Path) -> AbstractContextManager[object] | None:
    """Acquire the lock and return it as a context manager; None if another process holds it."""
    with extra("cli", "a lock between processes"):
        from filelock import FileLock, Timeout

    try:
        return FileLock(path).acquire(timeout=0)
    except Timeout:
        return None


def is_locked(path: Path) -> bool | None:
    """Return whether a process holds the lock; None if the system does not tell.

    Acquiring the lock to test it could block its next owner, so read ``/proc/locks``.
    """
    try:
        number = path.stat().st_ino
    except OSError:
        return False
    try:
        held = Path("/proc/locks").read_text("ascii").split("\n")
    except OSError:
        return None
    # "1: FLOCK  ADVISORY  WRITE 712 08:01:136478 0 EOF"; device numbers can differ between mounts.
    return any(
        line.split()[5].rpartition(":")[2] == str(number)
        for line in held
        if "FLOCK" in line and "->" not in line
    )


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock inside the block; call ``on_wait`` once if another process holds it."""
    with extra("cli", "a lock between processes"):
        from filelock import FileLock

    lock = try_lock(path)
    if lock is None:
        if on_wait is not None:
            on_wait()
        lock = FileLock(path).acquire()
    with lock:
        yield
