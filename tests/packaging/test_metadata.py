"""Versions and names agree between the package, its metadata, the changelog and the citation."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

import firststep

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_one_version() -> None:
    """The version is in ``firststep/__init__.py``; the metadata is made from it."""
    assert PROJECT["dynamic"] == ["version"]
    assert firststep.__version__ == metadata.version("firststep") == str(CITATION["version"])
    assert f"## {firststep.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_names_the_software_and_the_paper() -> None:
    assert {"cff-version", "message", "title", "authors"} <= set(CITATION)  # what the format requires
    assert CITATION["license"] == "MIT"
    (paper,) = CITATION["references"]
    assert {"type", "title", "authors"} <= set(paper)
    bibtex = (ROOT / "README.md").read_text()
    assert paper["title"] in bibtex
    assert all(author["family-names"] in bibtex for author in paper["authors"])
    assert str(paper["year"]) in bibtex


def test_no_file_of_the_package_is_ignored() -> None:
    """Files that .gitignore names are left out of the wheel, even if git has them."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout, or no git")
    files = [path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    asked = "\n".join(str(path.relative_to(ROOT)) for path in files if ".egg-info" not in str(path))
    command = ["git", "check-ignore", "--no-index", "--stdin"]
    done = subprocess.run(command, cwd=ROOT, input=asked, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr


def test_every_direct_dependency_is_pinned() -> None:
    pinned = {
        line.partition("==")[0].lower()
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    wanted = [
        *PROJECT["dependencies"],
        *(line for lines in PROJECT["optional-dependencies"].values() for line in lines),
    ]
    names = {line.partition(">")[0].lower() for line in wanted if not line.startswith("firststep[")}
    assert names <= pinned
