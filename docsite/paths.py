"""Paths of the repository and of the parts of the site."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONFIG = ROOT / "mkdocs.yml"
