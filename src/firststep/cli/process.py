"""Process-wide settings that commands make and a library leaves to its user."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from firststep.allocator import keep_freed_memory


def prepare() -> None:
    """Keep freed memory, and cache compiled code between runs, unless the user has chosen otherwise."""
    keep_freed_memory()
    if "TORCHINDUCTOR_CACHE_DIR" not in os.environ:
        folder = _compiled_code_folder()
        if folder is not None:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)


def _compiled_code_folder() -> Path | None:
    """Return a folder in the user's cache, which unlike torch's temporary folder is permanent.

    There is one folder per kind of CPU: home folders are shared between machines, and compiled code does not
    record which instructions it needs. None if the folder is not writable.
    """
    from firststep.data import user_cache

    cpu = Path("/proc/cpuinfo")
    text = cpu.read_text("utf-8") if cpu.is_file() else ""
    kind = sorted(
        {line for line in text.splitlines() if line.startswith(("model name", "flags", "Features"))}
    )
    folder = user_cache() / f"compiled-{hashlib.sha256(repr(kind).encode()).hexdigest()[:8]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None
