"""Versions and names agree between the package, its metadata, the changelog and the citation."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

import firststep

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_one_version() -> None:
    assert firststep.__version__ == PROJECT["version"] == str(CITATION["version"])
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
