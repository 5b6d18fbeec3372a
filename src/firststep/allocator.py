"""Keep the memory that tensors free for the next ones.

The C library of most Linux systems (glibc) asks the kernel for every large tensor and gives it back when it
is freed; the next one is then filled with fresh zeroed pages, one page fault after the other. Training
allocates the same sizes again and again. So a training process is told to keep freed memory: faster, at a
peak that is higher by what lies in the gaps. The library does so only when asked, for it changes the whole
process.

Large pages (2 MiB) are asked for too, where the kernel gives them to those who ask: fewer page faults, and
fewer pages for the processor to look up. torch reads its setting at its first large tensor.
"""

from __future__ import annotations

import ctypes
import os

# Of mallopt(3)
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_NEVER_MIND = 2**31 - 1  # bytes that may lie unused at the end; the largest value it takes
_AT_ONCE = 2**26  # bytes by which memory grows

LARGE_PAGES = "THP_MEM_ALLOC_ENABLE"  # torch's own variable; a value that is set already stays
FIXED_BY_USER = "MALLOC_"
"""Environment variables that begin so are the user's own settings, which stay; as do GLIBC_TUNABLES."""


def keep_freed_memory() -> bool:
    """For this process, from now on; False where there is no such setting, or the user has made it.

    Call it before the first tensors are made.
    """
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if "glibc.malloc" in tunables or any(name.startswith(FIXED_BY_USER) for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    os.environ.setdefault(LARGE_PAGES, "1")
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER_MIND), (_TOP_PAD, _AT_ONCE))
    return all(mallopt(name, value) == 1 for name, value in settings)
