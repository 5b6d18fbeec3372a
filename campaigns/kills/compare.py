"""Compare two folders of results bit for bit. Not compared:

| file | why |
|---|---|
| ``sessions.json`` | how long each session took, and that there were several |
| ``tensorboard/`` | events carry the time of day, and their files the number of the process |
| ``*.lock``, ``.lock`` | files of no content that the system's locks hang on |
| temporary files | they are a violation of their own |
| "training time" in the results of ``paper`` | from ``sessions.json``; in a figure's description too |
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from campaigns.snapshot import TEMPORARY

LEFT_OUT = re.compile(r"(^|/)(sessions\.json$|tensorboard(/|$)|[^/]*\.lock$|compiled-[0-9a-f]+(/|$))")
TRAINING_TIME = re.compile(rb'.*(training[ _](time|seconds)|"(seconds|killed)":).*')


def results(work: Path) -> dict[str, str]:
    """Return {path: digest} of every file that must be the same."""
    found = {}
    for here, _, files in os.walk(work):
        for name in files:
            path = Path(here, name)
            relative = os.fsencode(path.relative_to(work)).decode(errors="backslashreplace")
            if not LEFT_OUT.search(relative) and not TEMPORARY.search(os.fsencode(relative)):
                found[relative] = _digest(path, relative)
    return found


def _digest(path: Path, relative: str) -> str:
    if relative.startswith("results/"):
        if path.suffix == ".png":
            return _pixels(path)
        return hashlib.sha256(TRAINING_TIME.sub(b"", path.read_bytes())).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _pixels(path: Path) -> str:
    from PIL import Image

    with Image.open(path) as image:
        return hashlib.sha256(image.tobytes()).hexdigest()


def differences(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """Return which files are missing, unexpected or different."""
    words = []
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            words.append(f"{name} is missing")
        elif name not in expected:
            words.append(f"{name} should not be there")
        elif expected[name] != found[name]:
            words.append(f"{name} differs")
    return words
