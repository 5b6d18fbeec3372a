"""What the commands set for their whole process; a library leaves that to its user."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from firststep.allocator import keep_freed_memory


def prepare() -> None:
    """Keep freed memory, and compiled code between runs: settings of the user's own stay."""
    keep_freed_memory()
    if "TORCHINDUCTOR_CACHE_DIR" not in os.environ:
        folder = _compiled_code()
        if folder is not None:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)


def _compiled_code() -> Path | None:
    """Beside the data's caches, not in the temporary folder that torch would take: to be found again.

    One for each kind of CPU: home folders are shared between machines, and what the compiler keeps does not
    say which instructions it needs. None if nothing can be written there.
    """
    from firststep.data.cache import user_cache

    cpu = Path("/proc/cpuinfo")
    text = cpu.read_text() if cpu.is_file() else ""
    kind = sorted(
        {line for line in text.splitlines() if line.startswith(("model name", "flags", "Features"))}
    )
    folder = user_cache() / f"compiled-{hashlib.sha256(repr(kind).encode()).hexdigest()[:8]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None
