"""Texts in files: ``.csv`` with the columns text and label, or ``.txt`` with one text per line."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from firststep.data import read_columns
from firststep.errors import FirststepError
from firststep.utils import read_bytes

STDIN = Path("-")


@dataclass(frozen=True)
class Texts:
    texts: list[str]
    labels: list[str] | None = None


def labelled_texts(path: Path) -> Texts:
    """Read texts with labels from a .csv file."""
    if path.suffix.lower() != ".csv":
        raise FirststepError(f"{path}: labelled texts are a .csv file with the columns text and label")
    rows = [(text.strip(), label.strip()) for text, label in read_columns(path, "text", "label")]
    for number, (text, label) in enumerate(rows, 1):
        if not text or not label:
            raise FirststepError(f"{path}: text {number} has no {'label' if text else 'words'}")
    return Texts([text for text, _ in rows], [label for _, label in rows])


def asked_texts(path: Path) -> Texts:
    """Read texts to classify; ``-`` is standard input, with one text per line."""
    if path == STDIN:
        return _lines(sys.stdin.buffer.read(), "standard input")
    if path.suffix.lower() != ".csv":
        return _lines(read_bytes(path), str(path))
    if "label" in _columns(path):
        return labelled_texts(path)
    found = [text.strip() for (text,) in read_columns(path, "text")]
    return _some(Texts(found), str(path))


def _columns(path: Path) -> list[str]:
    first = read_bytes(path).decode("utf-8-sig", errors="replace").partition("\n")[0]
    return [name.strip().strip('"') for name in first.split(",")]


def _lines(content: bytes, name: str) -> Texts:
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise FirststepError(f"{name} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    return _some(Texts([line.strip() for line in lines if line.strip()]), name)


def _some(found: Texts, name: str) -> Texts:
    if not found.texts:
        raise FirststepError(f"{name} has no texts")
    return found
