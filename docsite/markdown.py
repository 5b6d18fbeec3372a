"""A Python-Markdown extension: formulas become MathML while the site is built, Sphinx roles become code.

Formulas are written as GitHub shows them, ``$...$`` in a line and ``$$...$$`` by themselves. MathML needs no
program and no font from elsewhere: browsers draw it. The roles are those of the docstrings. An extension of
Markdown, unlike a plugin of MkDocs, serves whichever program builds the site.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?(?P<name>[\w.]+)`")


def mathml(latex: str, *, display: bool) -> str:
    """One formula as a ``<math>`` element."""
    return convert(latex.strip(), display="block" if display else "inline")


class _Formulas(Postprocessor):
    def run(self, text: str) -> str:
        return _FORMULA.sub(
            lambda found: mathml(html.unescape(found["latex"]), display=found["tag"] == "div"), text
        )


class _Docstrings(Preprocessor):
    """Sphinx roles, and the two colons before a block of code."""

    def run(self, lines: list[str]) -> list[str]:
        named = [
            _ROLE.sub(lambda role: f"`{role['name'].removeprefix('firststep.')}`", line) for line in lines
        ]
        return [line[:-1] if line.endswith("::") else line for line in named]


class DocsiteExtension(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.register(
            _Docstrings(md), "docsite-docstrings", 40
        )  # before fences and code are set aside
        md.postprocessors.register(_Formulas(md), "docsite-formulas", -10)  # after everything


def makeExtension(**options: Any) -> DocsiteExtension:
    """What Python-Markdown calls by this name."""
    return DocsiteExtension(**options)
