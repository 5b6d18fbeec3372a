"""Keep the memory that tensors free for the next ones.

The C library of most Linux systems (glibc) asks the kernel for the memory of every large tensor and returns
it afterwards. The next tensor then costs one page fault per page. A meta-gradient allocates the same sizes
again and again, so it is faster in a process that keeps freed memory. The peak is higher by the gaps between
tensors. It is a setting of the whole process: the commands make it, and your own program may.

Large pages (2 MiB) are requested too, if the kernel gives them on request. They mean fewer page faults and
fewer look-ups. Torch reads its setting at its first large tensor.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress

# Numbers of mallopt(3)
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_SETTINGS = (
    (_MMAP_MAX, 0),
    (_TRIM_THRESHOLD, 2**31 - 1),  # bytes that may lie unused at the end: the largest possible value
    (_TOP_PAD, 2**26),  # bytes by which memory grows
)

LARGE_PAGES = "THP_MEM_ALLOC_ENABLE"  # torch's own variable; a value that is set already stays
FIXED_BY_USER = "MALLOC_"
"""Prefix of environment variables with the user's own settings, which stay, as those of GLIBC_TUNABLES do."""


def keep_freed_memory() -> bool:
    """Make the C library keep freed memory in this process.

    Call it before the first tensor is made. Returns False if the C library has no such setting or the user
    has set it.

    Examples:
        >>> fs.keep_freed_memory()  # doctest: +SKIP
    """
    mallopt = _mallopt()
    if mallopt is None:
        return False
    os.environ.setdefault(LARGE_PAGES, "1")
    return all(mallopt(name, value) == 1 for name, value in _SETTINGS)


def _mallopt() -> Callable[[int, int], int] | None:
    """Return the function; None if the C library has none or the user has made settings."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if "glibc.malloc" in tunables or any(name.startswith(FIXED_BY_USER) for name in os.environ):
        return None
    try:
        function: Callable[[int, int], int] = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return None
    return function


def give_back_freed_memory() -> None:
    """Return freed memory to the system once, if the C library can. Use it after compiling."""
    with suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
