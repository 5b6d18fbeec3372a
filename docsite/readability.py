"""Measure how long the sentences of each page are. The figures are looked at, not enforced."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from docsite.paths import DOCS, ROOT
from firststep.utils.table import Table

LONG = 25
"""Words of a sentence from which on it should be two."""
NOT_PROSE = re.compile(
    r"^```.*?^```|^<!-- generated.*?<!-- end -->|<!--.*?-->|<picture>.*?</picture>|^\$\$.*?^\$\$",
    re.DOTALL | re.MULTILINE,
)
SKIPPED = re.compile(r"^(    |\||#|!\[)")
"""Lines of code, tables, headings and pictures."""
NEW_PARAGRAPH = re.compile(r"^\s*(?:[-*]|\d+\.) ")
END = re.compile(r"""(?<=[.!?])[)*"”]*\s+(?=[A-Z0-9`*\[“(α-ωA-Z$])""")


def pages() -> list[Path]:
    """Return the pages that people write: docs and the Markdown files beside the README."""
    return [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md")), *sorted(DOCS.glob("*.md"))]


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page, without code, tables, headings and generated parts."""
    paragraph: list[str] = []
    for line in [*NOT_PROSE.sub("", text).splitlines(), ""]:
        in_item = line.startswith("    ") and bool(paragraph)
        if not line.strip() or NEW_PARAGRAPH.match(line) or (SKIPPED.match(line) and not in_item):
            yield from (one for one in END.split(" ".join(paragraph)) if length(one))
            paragraph = []
        if NEW_PARAGRAPH.match(line) or not SKIPPED.match(line) or in_item:
            paragraph += [NEW_PARAGRAPH.sub("", line).strip()] if line.strip() else []


def length(sentence: str) -> int:
    """Return the number of words; the target of a link is none."""
    words = re.sub(r"\]\([^)]*\)", "]", sentence).split()
    return sum(any(character.isalnum() for character in word) for word in words)


def table() -> str:
    """Return words per sentence and long sentences of every page, the worst first."""
    rows = []
    for page in pages():
        lengths = [length(sentence) for sentence in sentences(page.read_text())]
        over = sum(count > LONG for count in lengths)
        if lengths:
            rows.append((over / len(lengths), str(page.relative_to(ROOT)), len(lengths), over, lengths))
    shown = Table(["page", "sentences", "words per sentence", f"over {LONG} words"])
    for _, name, count, over, lengths in sorted(rows, reverse=True):
        shown.add_row(name, str(count), f"{sum(lengths) / count:.1f}", str(over))
    return shown.to_markdown()


def long_sentences(page: Path) -> list[str]:
    """Return the sentences of a page that should be two."""
    return [sentence for sentence in sentences(page.read_text()) if length(sentence) > LONG]
