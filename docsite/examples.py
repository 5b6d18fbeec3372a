"""The examples of the docstrings, to be run page after page."""

from __future__ import annotations

import doctest
import re
from typing import Any

from docsite.definitions import definition
from docsite.public_names import GROUPS
from docsite.reference import FOLDER, start_of

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def starts() -> dict[str, str]:
    """Return, by heading of the reference's first page, the code under it."""
    text = (FOLDER / "README.md").read_text()
    sections = re.findall(r"^### (.*?)\n.*?^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return {title.lower().replace(" ", "-"): code for title, code in sections}


def start(module: str) -> str:
    """Return what runs before the examples of a module: the code up to and under its heading."""
    code = starts()
    names = list(code)
    return "\n".join(code[name] for name in names[: names.index(start_of(module)) + 1])


def examples(module: str, namespace: dict[str, Any]) -> list[doctest.DocTest]:
    """Return the examples of a page of the reference; an empty list for a name without one."""
    parser = doctest.DocTestParser()
    found = []
    for names in GROUPS[module].values():
        for name in names:
            place = definition(module, name)
            found.append(
                parser.get_doctest(place.docstring, namespace, place.path, str(place.file), place.line)
            )
    return found
