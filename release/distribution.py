"""The wheel and the sdist: built, and their contents compared with what git has."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SDIST_FILES = ("CHANGELOG.md", "CITATION.cff", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml")
"""Files of the sdist beside ``src/firststep``. hatchling adds ``.gitignore``."""
MOST_BYTES = 8 * 2**20
"""Largest wheel that we publish. A new model may need a larger bound."""


class ReleaseError(Exception):
    """A check failed; the message says which and why."""


@dataclass(frozen=True)
class Distribution:
    """The two files of a release."""

    wheel: Path
    sdist: Path


def build(folder: Path, *, isolated: bool = True) -> Distribution:
    """Build the sdist, and the wheel from it, into ``folder``.

    Args:
        folder: receives the two files; must hold no other wheel.
        isolated: build in an environment of its own, which pip downloads; else with this one's hatchling.
    """
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    run(command if isolated else [*command, "--no-isolation"])
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Distribution(wheel, sdist)


def run(command: list[str], **options: object) -> str:
    """Run a command, return its standard output; raise with the end of its output where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise ReleaseError(f"{' '.join(command)} failed with exit code {done.returncode}:\n{said}")
    return str(done.stdout)


def tracked_files() -> set[str]:
    """Return the package's files in git, relative to ``src``."""
    listed = run(["git", "ls-files", "-z", "src/firststep"], cwd=ROOT)
    return {name.removeprefix("src/") for name in listed.split("\0") if name}


def wheel_files(wheel: Path) -> dict[str, int]:
    """Return the size of every file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.file_size for entry in archive.infolist()}


def sdist_files(sdist: Path) -> set[str]:
    """Return the files of an sdist, without its top folder."""
    with tarfile.open(sdist) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def check_contents(built: Distribution, version: str) -> None:
    """Refuse a wheel or sdist whose files are not exactly the package's files in git."""
    if f"-{version}-" not in built.wheel.name or not built.sdist.name.endswith(f"-{version}.tar.gz"):
        raise ReleaseError(f"{built.wheel.name} and {built.sdist.name} are not of version {version}")
    package = tracked_files()
    metadata = f"firststep-{version}.dist-info"
    names = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    _compare(built.wheel, set(wheel_files(built.wheel)), package | {f"{metadata}/{name}" for name in names})
    sources = {f"src/{name}" for name in package}
    _compare(built.sdist, sdist_files(built.sdist) - {".gitignore"}, sources | set(SDIST_FILES))
    if (size := built.wheel.stat().st_size) > MOST_BYTES:
        raise ReleaseError(f"{built.wheel.name} has {size:,} bytes; at most {MOST_BYTES:,} are expected")


def _compare(file: Path, found: set[str], expected: set[str]) -> None:
    if missing := sorted(expected - found):
        raise ReleaseError(f"{file.name} lacks {', '.join(missing[:5])}; {len(missing)} files in all")
    if extra := sorted(found - expected):
        raise ReleaseError(f"{file.name} has {', '.join(extra[:5])}, which git does not; {len(extra)} in all")
