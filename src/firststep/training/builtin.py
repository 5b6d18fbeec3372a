"""Models that come with the package, by name; imported without torch, for the help of commands."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

BUILTIN = "builtin:"


def builtin_models() -> list[str]:
    """Return the names of the models that come with the package, each as ``builtin:NAME``."""
    return sorted(f"{BUILTIN}{path.parent.name}" for path in shipped_models().glob("*/run.json"))


def shipped_models() -> Path:
    return Path(str(resources.files("firststep"))) / "models"
