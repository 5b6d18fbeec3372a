"""Where the repository and the parts of the site are."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONFIG = ROOT / "mkdocs.yml"
