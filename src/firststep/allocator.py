"""Keep the memory that tensors free for the next ones.

The C library of most Linux systems (glibc) asks the kernel for every large tensor and gives it back when it
is freed; the next one is then filled with fresh zeroed pages, one page fault after the other. A meta-gradient
allocates the same sizes again and again, so it is faster in a process that keeps freed memory, at a peak that
is higher by the gaps between tensors. It is a setting of the whole process: the commands switch it on, and a
program of your own may.

Large pages (2 MiB) are asked for too, where the kernel gives them to those who ask: fewer page faults, and
fewer pages for the processor to look up. torch reads its setting at its first large tensor.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress

# Of mallopt(3)
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_SETTINGS = (
    (_MMAP_MAX, 0),
    (_TRIM_THRESHOLD, 2**31 - 1),  # bytes that may lie unused at the end; the largest value it takes
    (_TOP_PAD, 2**26),  # bytes by which memory grows
)

LARGE_PAGES = "THP_MEM_ALLOC_ENABLE"  # torch's own variable; a value that is set already stays
FIXED_BY_USER = "MALLOC_"
"""Environment variables that begin so are the user's own settings, which stay; as do GLIBC_TUNABLES."""


def keep_freed_memory() -> bool:
    """For this process, from now on; False where there is no such setting, or the user has made it.

    Call it before the first tensors are made.

    Examples:
        >>> fs.keep_freed_memory()  # doctest: +SKIP
    """
    mallopt = _mallopt()
    if mallopt is None:
        return False
    os.environ.setdefault(LARGE_PAGES, "1")
    return all(mallopt(name, value) == 1 for name, value in _SETTINGS)


def _mallopt() -> Callable[[int, int], int] | None:
    """None where there is no such function, or the user has made settings."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if "glibc.malloc" in tunables or any(name.startswith(FIXED_BY_USER) for name in os.environ):
        return None
    try:
        function: Callable[[int, int], int] = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return None
    return function


def give_back_freed_memory() -> None:
    """Once: what was freed goes back to the system, where the C library can do so. No setting changes.

    After a piece of work that is not done again and took much memory, such as compiling.
    """
    with suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
