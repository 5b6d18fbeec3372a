"""Empty environments outside the checkout, into which the wheel is installed as a user would."""

from __future__ import annotations

import os
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from release.distribution import ROOT, run

OWN_EXTRAS = ("dev",)
"""Extras for work on firststep itself: they need a clone."""


def extras() -> list[str]:
    """Return the extras that users install, in the order of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [name for name in project["optional-dependencies"] if name not in OWN_EXTRAS]


@dataclass(frozen=True)
class Environment:
    """A virtual environment that knows nothing of the checkout."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def command(self) -> Path:
        return self.python.with_name("firststep.exe" if os.name == "nt" else "firststep")

    @property
    def packages(self) -> Path:
        found = self.call("-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
        return Path(found.strip())

    def call(self, *words: str, folder: Path | None = None) -> str:
        """Run its Python in ``folder`` and return what it prints."""
        return run([str(self.python), *words], cwd=folder or self.folder, env=self._variables())

    def firststep(self, *words: str, folder: Path) -> str:
        """Run its ``firststep`` command in ``folder`` and return what it prints."""
        return run([str(self.command), *words], cwd=folder, env=self._variables())

    def install(self, *requirements: str) -> None:
        pinned = ("--disable-pip-version-check", "--quiet", "-c", str(ROOT / "constraints.txt"))
        self.call("-m", "pip", "install", *pinned, *requirements)

    def borrow(self, site_packages: Path) -> None:
        """Let it import the packages of another environment. Its own come first."""
        (self.packages / "borrowed.pth").write_text(f"{site_packages}\n", "utf-8")

    def _variables(self) -> dict[str, str]:
        cleared = ("PYTHONPATH", "VIRTUAL_ENV", "FIRSTSTEP_IMPORT")
        return {name: value for name, value in os.environ.items() if name not in cleared}


def empty_environment(folder: Path, *, pip: bool = True) -> Environment:
    """Create an empty environment with this Python."""
    run([sys.executable, "-m", "venv", *([] if pip else ["--without-pip"]), str(folder)])
    return Environment(folder)
