"""Provenance of a run: versions, commit, hardware."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

PACKAGE = Path(__file__).parents[1] / "__init__.py"


def collect_provenance(device: str = "auto") -> dict[str, Any]:
    """Return the machine and code versions of this process."""
    return {
        "firststep": package_version(),
        "commit": commit(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": hardware(device),
    }


def package_version() -> str | None:
    """Return the version of the installed package; None if it is not installed."""
    try:
        return metadata.version("firststep")
    except metadata.PackageNotFoundError:
        return None


def hardware(device: str = "auto") -> str:
    """Return the processor with its thread count, and the GPU if one is used."""
    text = f"{_processor()} ({platform.machine()}), {torch.get_num_threads()} threads"
    if device == "cpu" or not torch.cuda.is_available():
        return text
    return f"{torch.cuda.get_device_name(None if device == 'auto' else device)}, {text}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def commit() -> str | None:
    """Return the commit of this checkout, marked if files were changed; None outside a checkout."""
    # The package may be installed inside another repository: only count one that tracks our files.
    if _git(PACKAGE.parent, "ls-files", "--error-unmatch", PACKAGE.name) is None:
        return None
    found = _git(PACKAGE.parent, "rev-parse", "--short=12", "HEAD")
    changed = _git(PACKAGE.parent, "status", "--porcelain", "--untracked-files=no", ".")
    return f"{found} with changes" if found and changed else found


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
