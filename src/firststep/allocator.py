"""Keep the memory that tensors free for the next ones.

The C library of most Linux systems (glibc) asks the kernel for every large tensor and gives it back when it
is freed; the next one is then filled with fresh zeroed pages, one page fault after the other. A meta-gradient
allocates the same sizes again and again, so while one is computed freed memory is kept: faster, at a peak
that is higher by what lies in the gaps. A training process of our own is told so for good; somebody else's
process gets its usual settings back after every meta-gradient.

Large pages (2 MiB) are asked for too in our own processes, where the kernel gives them to those who ask:
fewer page faults, and fewer pages for the processor to look up. torch reads its setting at its first large
tensor.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

# Of mallopt(3)
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -2, -3, -4
_NEVER_MIND = 2**31 - 1  # bytes that may lie unused at the end; the largest value it takes
_AT_ONCE = 2**26  # bytes by which memory grows
_KEPT = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER_MIND), (_TOP_PAD, _AT_ONCE))
# What glibc's own thresholds come to in a process that has freed a tensor of 32 MiB or more: they grow up to
# there by themselves, until one of them is set by hand.
_USUAL = (
    (_MMAP_MAX, 2**16),
    (_MMAP_THRESHOLD, 2**25),
    (_TRIM_THRESHOLD, 2**26),
    (_TOP_PAD, 2**17),
)

LARGE_PAGES = "THP_MEM_ALLOC_ENABLE"  # torch's own variable; a value that is set already stays
FIXED_BY_USER = "MALLOC_"
"""Environment variables that begin so are the user's own settings, which stay; as do GLIBC_TUNABLES."""


def keep_freed_memory() -> bool:
    """For this process, from now on; False where there is no such setting, or the user has made it.

    Call it before the first tensors are made.
    """
    mallopt = _mallopt()
    if mallopt is None:
        return False
    os.environ.setdefault(LARGE_PAGES, "1")
    with _scopes.lock:
        _scopes.for_good = True
        return _set(mallopt, _KEPT)


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Inside; after the last of several (also in other threads) the usual settings hold again.

    What was kept then serves the process's next tensors or goes back to the system as they are freed.
    """
    mallopt = _mallopt()
    with _scopes.lock:
        _scopes.open += 1
        if mallopt and _scopes.open == 1 and not _scopes.for_good:
            _set(mallopt, _KEPT)
    try:
        yield
    finally:
        with _scopes.lock:
            _scopes.open -= 1
            if mallopt and _scopes.open == 0 and not _scopes.for_good:
                _set(mallopt, _USUAL)


class _Scopes:
    """Who wants freed memory kept at the moment: the setting is the whole process's."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.open = 0
        self.for_good = False


_scopes = _Scopes()
Mallopt = Callable[[int, int], int]


def _mallopt() -> Mallopt | None:
    """None where there is no such function, or the user has made settings."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if "glibc.malloc" in tunables or any(name.startswith(FIXED_BY_USER) for name in os.environ):
        return None
    try:
        function: Mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return None
    return function


def _set(mallopt: Mallopt, settings: tuple[tuple[int, int], ...]) -> bool:
    return all(mallopt(name, value) == 1 for name, value in settings)
