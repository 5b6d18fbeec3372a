"""Outputs and pictures of the tutorials: the code is run as it stands, and what it prints goes below it.

A block's output is a text block after ``<!-- output -->``. Pictures that the code saves are copied to
docs/images/tutorials with the number of the tutorial before their names.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from docsite.paths import DOCS
from firststep.utils.files import write_text

FOLDER = DOCS / "tutorials"
IMAGES = DOCS / "images" / "tutorials"
_OUTPUT = re.compile(r"\n<!-- output -->\n```text\n(?P<text>.*?)^```\n", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^```python\n(?P<code>.*?)^```\n", re.DOTALL | re.MULTILINE)


def tutorials() -> list[Path]:
    return sorted(FOLDER.glob("[0-9]*.md"))


def blocks(text: str) -> Iterator[tuple[str, str | None]]:
    """Return (code, output below it or None) of every Python block of a tutorial."""
    for code in _CODE.finditer(text):
        output = _OUTPUT.match(text, code.end())
        yield code["code"], output["text"] if output else None


def without_outputs(text: str) -> str:
    """Return a tutorial without what its code prints."""
    return _OUTPUT.sub("", text)


def with_outputs(text: str) -> str:
    """Run the tutorial in the current folder."""
    namespace: dict[str, object] = {"__name__": "__main__"}

    def run(block: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], "tutorial", "exec"), namespace)
        said = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
        return block[0] + (f"\n<!-- output -->\n```text\n{said}\n```\n" if said else "")

    return _CODE.sub(run, without_outputs(text))


def write(page: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        text = with_outputs(page.read_text())
        IMAGES.mkdir(parents=True, exist_ok=True)
        number = page.name.partition("-")[0]
        for picture in sorted(Path(folder).glob("*.png")):
            shutil.copyfile(picture, IMAGES / f"{number}-{picture.name}")
    write_text(page, text)
