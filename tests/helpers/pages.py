"""What the README and the pages of docs/ tell people to run: Python blocks and command lines.

An HTML comment before a Python block, which readers of the page do not see, changes how it is run here::

    <!-- snippet: skip because REASON -->        not run; for what cannot be, such as another project's code
    <!-- snippet: with `SMALL` for `LARGE` -->   run with the first piece of code in place of the second
    <!-- snippet: given
    CODE
    -->                                          run after this, which stands for what the reader has
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_BLOCK = re.compile(
    r"(?P<notes>(?:^<!-- snippet:.*?-->\n+)*)^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_NOTE = re.compile(r"<!-- snippet: (?P<text>.*?)\s*-->", re.DOTALL)
_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"^([\w-]+)?\$ ")


@dataclass(frozen=True)
class Snippet:
    page: Path
    line: int
    """Of the first line of code, from 1."""
    code: str
    given: str = ""
    skipped: str = ""
    """Why it is not run; empty if it is."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def run(self, namespace: dict[str, object]) -> None:
        """Tracebacks show the page's own line numbers."""
        exec(compile(self.given, f"{self} (given)", "exec"), namespace)
        exec(compile("\n" * (self.line - 1) + self.code, str(self.page), "exec"), namespace)


def snippets(page: Path, text: str | None = None) -> Iterator[Snippet]:
    """The Python blocks of a page in order."""
    text = page.read_text() if text is None else text
    for block in _BLOCK.finditer(text):
        code, given, skipped = textwrap.dedent(block["code"]), "", ""
        for note in _NOTE.finditer(block["notes"]):
            if skip := re.fullmatch(r"skip because (.{10,})", note["text"]):
                skipped = skip[1]
            elif swap := re.fullmatch(r"with `([^`]+)` for `([^`]+)`", note["text"]):
                if swap[2] not in code:
                    raise ValueError(f"{page.name}: {swap[2]!r} is not in the block")
                code = code.replace(swap[2], swap[1])
            elif note["text"].startswith("given\n"):
                given += note["text"].removeprefix("given\n") + "\n"
            else:
                raise ValueError(f"{page.name}: not a note for a snippet: {note['text']!r}")
        line = text.count("\n", 0, block.start("code")) + 1
        yield Snippet(page, line, code, given, skipped)


def command_lines(page: Path, text: str | None = None) -> Iterator[list[str]]:
    """The arguments of every ``firststep`` that a page shows, in blocks and in running text."""
    text = page.read_text() if text is None else text
    shell = [
        block["body"] for block in _FENCE.finditer(text) if block["language"] in ("", "bash", "sh", "console")
    ]
    prose = _FENCE.sub("", text)
    shell += re.findall(r"(?:^(?: {4}|\t).*\n?)+", prose, re.MULTILINE)
    for block in shell:
        for line in block.replace("\\\n", " ").splitlines():
            yield from _arguments(_PROMPT.sub("", line.strip()))
    for inline in re.findall(r"(?<!`)`([^`\n]*(?:\n[^`\n]+)?)`(?!`)", prose):
        yield from _arguments(" ".join(inline.split()))


def _arguments(line: str) -> Iterator[list[str]]:
    start = re.match(
        r"(?:[A-Z_]+=\S+ )*(?:srun )?(?:torchrun .*?-m firststep|python -m firststep|firststep) ", line
    )
    if start is None:
        return
    words = shlex.split(line[start.end() :], comments=True)
    while words and words[-1] in ("...", "…"):
        words.pop()
    words = ["RUN" if word in ("...", "…") else word for word in words]  # left out: what is needed there
    if words and not {"COMMAND", "MODULE"} & set(words):  # placeholders
        yield words
