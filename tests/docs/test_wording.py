"""Words that we no longer use: each has a plain one (see "How we write" in CONTRIBUTING)."""

from __future__ import annotations

import re
import subprocess

import pytest

from docsite.paths import ROOT

RETIRED = {
    "twins?": "pair",
    "foretold": "predicted",
    "whoever": "the caller, the user",
    "in vain": "for nothing",
    "(go|goes|going|gone) on with": "resume",
    "front door": "public interface",
    "by a hair": "slightly",
    "without a word": "silently",
    "(is|are) no numbers?": "are NaN",
    "so many (of|as)": "the number of",
    "anew": "again",
    "hangs on": "depends on",
    "sittings?": "run",
    "stage_loss": "conditioning_loss",
    "rooms": "packages",
    "shelf|shelves": "package",
    "(conditioning|conditioned) (penalty|term)|stage loss": "conditioning loss",
}
"""Pattern: what to write instead. A word with a plain meaning too (room, facts, odd, cut) is not listed."""
PATTERN = re.compile(r"\b(" + "|".join(RETIRED) + r")\b", re.IGNORECASE)
EXEMPT = ("CHANGELOG.md", "tests/docs/test_wording.py")
"""They name the words."""
KINDS = ("*.py", "*.md", "*.cpp", "*.h", "*.js", "*.html", "Makefile", "*.toml", "*.yml")


def retired(text: str) -> list[str]:
    """Return the retired words of a text with what to write instead."""
    return [f"{found[0]!r}: write {substitute(found[0])!r}" for found in PATTERN.finditer(text)]


def substitute(word: str) -> str:
    return next(new for old, new in RETIRED.items() if re.fullmatch(old, word, re.IGNORECASE))


def test_no_file_uses_a_retired_word() -> None:
    listed = subprocess.run(["git", "ls-files", *KINDS], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a checkout, or no git")
    files = [ROOT / name for name in listed.stdout.splitlines() if name not in EXEMPT]
    found = {
        str(file.relative_to(ROOT)): words for file in files if (words := retired(file.read_text("utf-8")))
    }
    assert not found


def test_a_retired_word_is_found_with_its_substitute() -> None:
    assert retired("Whoever calls it") == ["'Whoever': write 'the caller, the user'"]
    assert retired("two sittings") == ["'sittings': write 'run'"]
    assert not retired("foretoldness; there is room for more")
