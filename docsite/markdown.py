"""A Python-Markdown extension: MathML for formulas, code for Sphinx roles, pictures that follow the theme.

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

from docsite.references import as_code

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
_PICTURE = re.compile(r"<picture>.*?</picture>", re.DOTALL)
_SOURCE = re.compile(r'<source media="(?P<media>[^"]*)" srcset="(?P<file>[^"]*)">')
_IMAGE = re.compile(r'<img src="(?P<file>[^"]*)" alt="(?P<alt>[^"]*)">')
_DARK = "(prefers-color-scheme: dark)"


def mathml(latex: str, *, display: bool) -> str:
    """Return one formula as a ``<math>`` element."""
    return convert(latex.strip(), display="block" if display else "inline")


class _Formulas(Postprocessor):
    def run(self, text: str) -> str:
        return _FORMULA.sub(
            lambda found: mathml(html.unescape(found["latex"]), display=found["tag"] == "div"), text
        )


class _Docstrings(Preprocessor):
    """Sphinx roles, and the two colons before a block of code."""

    def run(self, lines: list[str]) -> list[str]:
        return [line[:-1] if line.endswith("::") else line for line in map(as_code, lines)]


def themed(picture: str) -> str:
    """Return two pictures for one of two colour schemes.

    ``<picture>`` follows the system, as on GitHub. The site has a switch of its own, by which Material hides
    images whose address ends in ``#only-light`` or ``#only-dark``.
    """
    image = _IMAGE.search(picture)
    sources = [(one["media"], one["file"]) for one in _SOURCE.finditer(picture)]
    if image is None or not any(_DARK in media for media, _ in sources):
        return picture
    by_scheme: dict[str, list[tuple[str, str]]] = {"light": [("", image["file"])], "dark": []}
    for media, file in sources:
        scheme = "dark" if _DARK in media else "light"
        by_scheme[scheme].append((media.replace(_DARK, "").removesuffix(" and "), file))
    pictures = []
    for scheme, files in by_scheme.items():
        narrow = [f'<source media="{media}" srcset="{file}">' for media, file in files if media]
        (file,) = (file for media, file in files if not media)
        pictures.append(
            f'<picture>{"".join(narrow)}<img src="{file}#only-{scheme}" alt="{image["alt"]}"></picture>'
        )
    return "".join(pictures)


class _Pictures(Postprocessor):
    def run(self, text: str) -> str:
        return _PICTURE.sub(lambda found: themed(found[0]), text)


class DocsiteExtension(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.register(
            _Docstrings(md), "docsite-docstrings", 40
        )  # before fences and code are set aside
        md.postprocessors.register(_Formulas(md), "docsite-formulas", -10)  # after everything
        md.postprocessors.register(_Pictures(md), "docsite-pictures", -10)


def makeExtension(**options: Any) -> DocsiteExtension:
    """Return the extension; Python-Markdown calls this name."""
    return DocsiteExtension(**options)
