"""A stand-in for an environment without the extras: their packages cannot be imported."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

DISTRIBUTIONS = importlib.metadata.packages_distributions()

BLOCKER = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse())
"""


@functools.cache
def base_packages() -> frozenset[str]:
    """Import names that ``pip install firststep`` brings, its dependencies' dependencies included."""
    wanted, seen = ["torch", "numpy", "safetensors"], set()
    while wanted:
        name = _canonical(wanted.pop())
        if name in seen:
            continue
        seen.add(name)
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:  # for another platform
            continue
        wanted += [
            re.match(r"[\w.-]+", line).group()
            for line in requirements
            if "extra ==" not in line  # type: ignore[union-attr]
        ]
    return frozenset(
        module for module, owners in DISTRIBUTIONS.items() if any(_canonical(o) in seen for o in owners)
    )


def run_without(
    program: str, extras_too: tuple[str, ...] = (), folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program where only the base packages and ``extras_too`` can be imported."""
    allowed = base_packages() | {"firststep"} | set(extras_too)
    blocked = frozenset(DISTRIBUTIONS) - allowed
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKER.format(blocked=set(blocked)) + program],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
