"""The site's source: the repository's own pages, at the places that they have in the repository.

MkDocs wants all pages below one folder, and ours link to each other across README.md, docs/, results/ and
benchmarks/. A copy with the same layout keeps every relative link as it is, so that a link that works on
GitHub works in the site, and README.md is the site's home.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from docsite.paths import ROOT

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "LICENSE")
FOLDERS = ("docs", "notebooks", "results", "benchmarks")
ENDINGS = {".md", ".png", ".svg", ".csv", ".json", ".css", ".js", ".html", ".ipynb"}
"""Types of files that pages show or link to; programs are left out."""
LEFT_OUT = {"result.json", "results.json"}
"""Large, read by our own commands, linked by no page."""


def assemble(target: Path) -> None:
    """Copy all that the site needs into ``target``, which is emptied first."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in PAGES:
        shutil.copy2(ROOT / name, target / name)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in ENDINGS and path.name not in LEFT_OUT:
                copy = target / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)
