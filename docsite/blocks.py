"""Generated parts of hand-written pages, between two comments that readers do not see::

    <!-- generated: NAME -->
    ...
    <!-- end -->

``python -m docsite write`` fills them; a test fails where the text differs from what it would write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from docsite.paths import ROOT

_BLOCK = re.compile(
    r"(?P<head>^<!-- generated: (?P<name>\S+)(?P<words>[^\n]*?) -->\n).*?(?P<tail>^<!-- end -->$)",
    re.DOTALL | re.MULTILINE,
)

Generator = Callable[..., str]
"""(words after the name) → Markdown."""


def pages() -> list[Path]:
    """Return every page that may have generated parts."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "results" / "README.md"])


def filled(text: str, generators: Mapping[str, Generator]) -> str:
    """Return the text of a page with its generated parts made again."""

    def fill(block: re.Match[str]) -> str:
        if block["name"] not in generators:
            raise LookupError(f"nothing generates {block['name']!r}; there are: {', '.join(generators)}")
        made = generators[block["name"]](*block["words"].split())
        return f"{block['head']}\n{made.strip()}\n\n{block['tail']}"

    return _BLOCK.sub(fill, text)


def generated_names(text: str) -> list[str]:
    return [block["name"] for block in _BLOCK.finditer(text)]
