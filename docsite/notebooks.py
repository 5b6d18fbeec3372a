"""Notebooks of some tutorials, for Jupyter and Colab: the same text and the same code.

A block of commands that runs as it stands becomes a cell with ``!``. A picture that the code saves is shown
from its file. The notebooks have no outputs: the tutorial's page has them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from docsite.paths import ROOT
from docsite.tutorials import FOLDER, without_outputs

NOTEBOOKS = ROOT / "notebooks"
EXTRAS = {
    "3-the-first-step": "cli",
    "6-your-photographs": "photos,onnx",
    "7-your-own-network-and-loss": "",
}
"""Tutorials that are notebooks too, with the extras that they need."""
INSTALL = """\
# firststep is not on a package index yet. Where it is missing, put its wheel beside this notebook.
import glob, importlib.util

if importlib.util.find_spec("firststep") is None:
    wheels = glob.glob("firststep-*.whl")
    assert wheels, "upload the wheel of firststep: `make release-check` in a clone writes it to dist/"
    %pip install --quiet "{wheels[0]}EXTRAS"
"""
_PART = re.compile(
    r"(?P<notes>(?:^<!-- snippet:(?:(?!-->).)*-->\n+)*)(?:"
    r"^```python\n(?P<code>.*?)^```$|(?P<commands>(?:^ {4}[^\n]*\n)+)|"
    r"^!\[.*?\]\(\S*/\d-(?P<picture>\S+?)\)$)",
    re.DOTALL | re.MULTILINE,
)
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)]+)\)")


def notebooks() -> dict[Path, str]:
    """Return the notebooks by file."""
    return {
        NOTEBOOKS / f"{name}.ipynb": notebook((FOLDER / f"{name}.md").read_text("utf-8"), extras)
        for name, extras in EXTRAS.items()
    }


def notebook(text: str, extras: str) -> str:
    """Return a tutorial as a notebook in JSON.

    Args:
        text: the tutorial's page.
        extras: what its install cell asks for, such as ``photos,onnx``.
    """
    title, _, rest = without_outputs(text).partition("\n")
    install = INSTALL.replace("EXTRAS", f"[{extras}]" if extras else "")
    cells = [_cell("markdown", re.sub(r"^# \d+\. ", "# ", title)), _cell("code", install), *_cells(rest)]
    content = {
        "cells": [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _cells(text: str) -> Iterator[dict[str, object]]:
    end = 0
    for part in _PART.finditer(text):
        code = _code(part)
        if code is None:
            continue
        yield from _prose(text[end : part.start()])
        if code:
            yield _cell("code", code)
        end = part.end()
    yield from _prose(text[end:])


def _code(part: re.Match[str]) -> str | None:
    """Return the code of a part's cell; empty for no cell, None for a part that stays text."""
    if part["picture"]:
        return f'from IPython.display import Image\n\nImage("{part["picture"]}")'
    if part["code"]:
        return part["code"]
    lines = [line.strip() for line in part["commands"].splitlines() if line.strip()]
    if lines[0].startswith("pip install"):
        return ""
    if part["notes"] or not all(line.startswith("firststep ") for line in lines):
        return None
    return "\n".join(f"!{line}" for line in lines)


def _prose(text: str) -> Iterator[dict[str, object]]:
    text = re.sub(r"<!-- snippet:.*?-->\n+", "", text, flags=re.DOTALL).strip()
    if text:
        yield _cell("markdown", _LINK.sub(_from_here, text))


def _from_here(link: re.Match[str]) -> str:
    """Return a link of a tutorial as seen from the folder of notebooks."""
    target = link[1]
    return (
        f"](../docs/{target.removeprefix('../')})"
        if target[:3] == "../"
        else f"](../docs/tutorials/{target})"
    )


def _cell(kind: str, text: str) -> dict[str, object]:
    cell: dict[str, object] = {
        "cell_type": kind,
        "metadata": {},
        "source": text.strip().splitlines(keepends=True),
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})
