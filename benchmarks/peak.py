"""The largest resident memory that this process has had."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path


def peak_megabytes() -> float:
    """Return the peak; not by getrusage, which after an exec may report the parent's."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10


def forget_peak() -> None:
    """Reset the peak, where the system can do so."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
