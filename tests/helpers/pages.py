"""Python blocks and command lines in the README and the pages of docs/.

An HTML comment before a block or paragraph, which readers do not see, changes how it is run here::

    <!-- snippet: skip because REASON -->        not run; for what cannot be, such as another project's code
    <!-- snippet: with `SMALL` for `LARGE` -->   run with the first piece of text in place of the second
    <!-- snippet: given
    CODE
    -->                                          run after this Python, which stands for what the reader has
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warm_cli import WarmCommands

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_PART = re.compile(
    r"(?P<notes>(?:^<!-- snippet:.*?-->\n+)*)(?:"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<fenced>.*?)^(?P=indent)```$"
    r"|(?P<indented>(?:^(?: {4}|\t)[^\n]*\n?)+)"
    r"|(?P<prose>(?:^ {0,3}[^\s`][^\n]*\n?|^ {0,3}`(?!``)[^\n]*\n?)+))",
    re.DOTALL | re.MULTILINE,
)
_NOTE = re.compile(r"<!-- snippet: (?P<text>.*?)\s*-->", re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`\n]*(?:\n[^`\n]+)?)`(?!`)")
_PROMPT = re.compile(r"^([\w-]+)?\$ ")
_PROGRAM = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:srun )?(?:torchrun (?P<launch>.*?)-m firststep|python -m firststep|firststep) "
)
SHELLS = ("", "bash", "sh", "console")


@dataclass(frozen=True)
class Part:
    """A block or paragraph of a page, as it is shown and as it is run."""

    page: Path
    line: int
    """Number of its first line, from 1."""
    language: str
    """``python``, ``sh`` or, for a paragraph, ``prose``."""
    shown: str
    code: str
    given: str
    skipped: str


@dataclass(frozen=True)
class Snippet:
    page: Path
    line: int
    """Number of the first line of code, from 1."""
    code: str
    given: str = ""
    skipped: str = ""
    """Reason for not running it; empty if it is run."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def run(self, namespace: dict[str, object]) -> None:
        """Run a block so that tracebacks show the page's own line numbers."""
        exec(compile(self.given, f"{self} (given)", "exec"), namespace)
        exec(compile("\n" * (self.line - 1) + self.code, str(self.page), "exec"), namespace)


@dataclass(frozen=True)
class CommandLine:
    words: list[str]
    """After ``firststep``."""
    launch: list[str] | None = None
    """Options of torchrun, where it starts the command."""

    def run(self, warm: WarmCommands) -> subprocess.CompletedProcess[str]:
        if self.launch is None and "ray" not in self.words:
            return warm.run(self.words)
        # torchrun starts interpreters of its own, and workers of Ray end a little after the command.
        launcher = [] if self.launch is None else ["-m", "torch.distributed.run", *self.launch]
        program = [sys.executable, *launcher, "-m", "firststep", *self.words]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.run(program, capture_output=True, text=True, env=environment, timeout=400)


def parts(page: Path, text: str | None = None) -> Iterator[Part]:
    """Return the blocks and paragraphs of a page in order."""
    text = page.read_text() if text is None else text
    for found in _PART.finditer(text):
        kind = next(name for name in ("fenced", "indented", "prose") if found[name] is not None)
        shown = textwrap.dedent(found[kind])
        code, given, skipped = shown, "", ""
        for note in _NOTE.finditer(found["notes"]):
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
        line = text.count("\n", 0, found.start(kind)) + 1
        language = {"fenced": found["language"], "indented": "sh", "prose": "prose"}[kind]
        yield Part(page, line, "sh" if language in SHELLS else language, shown, code, given, skipped)


def snippets(page: Path, text: str | None = None) -> Iterator[Snippet]:
    """Return the Python blocks of a page in order."""
    for part in parts(page, text):
        if part.language == "python":
            yield Snippet(part.page, part.line, part.code, part.given, part.skipped)


def command_lines(page: Path, text: str | None = None) -> Iterator[list[str]]:
    """Return the arguments of every ``firststep`` that a page shows, in blocks and in running text."""
    for part in parts(page, text):
        yield from (line.words for line in commands(part.shown, part.language))


def commands(text: str, language: str) -> Iterator[CommandLine]:
    """Return the command lines of a block or paragraph."""
    if language == "sh":
        for line in text.replace("\\\n", " ").splitlines():
            yield from _command(_PROMPT.sub("", line.strip()))
    elif language == "prose":
        for inline in _INLINE.findall(text):
            yield from _command(" ".join(inline.split()))


def run_page(page: Path, warm: WarmCommands) -> None:
    """Run all that a page shows, from top to bottom, in the current folder."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for part in parts(page):
        if part.skipped:
            continue
        if part.language == "python":
            Snippet(part.page, part.line, part.code, part.given).run(namespace)
            continue
        exec(compile(part.given, f"{page.name}:{part.line} (given)", "exec"), namespace)
        for line in commands(part.code, part.language):
            done = line.run(warm)
            assert done.returncode == 0, f"{page.name}:{part.line}: {line}\n{done.stderr}"


def _command(line: str) -> Iterator[CommandLine]:
    start = _PROGRAM.match(line)
    if start is None:
        return
    words = shlex.split(line[start.end() :], comments=True)
    while words and words[-1] in ("...", "…"):
        words.pop()
    words = ["RUN" if word in ("...", "…") else word for word in words]  # left out: what is needed there
    if words and not {"COMMAND", "MODULE"} & set(words):  # placeholders
        yield CommandLine(words, None if start["launch"] is None else start["launch"].split())
