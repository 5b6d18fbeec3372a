"""Run the Python code of README and docs, and parse their command lines.

Command lines of tutorials are run too, in the order of the page, with the code between them.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from firststep.cli import arguments, main
from firststep.utils.user_modules import VARIABLE
from helpers.pages import PAGES, ROOT, Snippet, command_lines, parts, run_page, snippets
from warm_cli import WarmCommands

# The start of the reference's examples is run with them (test_reference).
TUTORIALS = [page for page in PAGES if page.parent.name == "tutorials"]
CLUSTER, PHOTOGRAPHS = "5-from-one-machine-to-a-cluster.md", "6-your-photographs.md"
"""Ray and torchrun, two exports to ONNX: each takes longer than other pages."""
WITH_CODE = [
    page for page in PAGES if list(snippets(page)) and page.parent.name not in ("reference", "tutorials")
]
WITH_COMMANDS = [page for page in PAGES if list(command_lines(page))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.usefixtures("clean_registries")
@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_python_blocks_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for snippet in snippets(page):
            if not snippet.skipped:
                snippet.run(namespace)


@pytest.mark.usefixtures("clean_registries")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page.name in (CLUSTER, PHOTOGRAPHS) else [])
        for page in TUTORIALS
    ],
    ids=name_of,
)
def test_a_tutorial_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: WarmCommands
) -> None:
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        run_page(page, warm)


def test_a_command_that_fails_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: WarmCommands
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n<!-- snippet: with `there` for `RUN` -->\n\n    firststep evaluate RUN\n")
    with pytest.raises(AssertionError, match=r"page\.md:5: .*\n.*there is not a folder"):
        run_page(page, warm)
    page.write_text("Say `firststep data list`.\n\n    host$ firststep --version\n")
    run_page(page, warm)


def test_few_blocks_are_skipped() -> None:
    blocks = [part for page in PAGES for part in parts(page)]
    skipped = [f"{part.page.name}:{part.line}: {part.skipped}" for part in blocks if part.skipped]
    assert len(skipped) <= 3, skipped


def test_pages_install_from_a_clone_until_there_is_a_release() -> None:
    failing = re.compile(r"pip install '?firststep")
    assert [name_of(page) for page in PAGES if failing.search(page.read_text())] == []


@pytest.fixture
def parse_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse arguments without running the command."""

    def accepting(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def accept(*values: Any, **named: Any) -> Callable[[], None]:
            return lambda: None

        return accept

    monkeypatch.setattr(arguments, "_deferred", accepting)


def parses(words: list[str]) -> bool:
    return main(words) == 0


@pytest.fixture
def modules_of_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Path, str], None]]:
    """Make the module that a page imports by ``--import NAME`` from the page's Python blocks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr(sys, "path", list(sys.path))
    made = []

    def make(page: Path, name: str) -> None:
        (tmp_path / f"{name}.py").write_text("\n".join(each.code for each in snippets(page)))
        made.append(name)

    yield make
    for name in made:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
@pytest.mark.usefixtures("parse_only", "clean_registries")
def test_command_lines_are_understood(
    page: Path, modules_of_pages: Callable[[Path, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = list(command_lines(page))
    for line in lines:
        if line[0] == "--import":
            modules_of_pages(page, line[1])
    wrong = [line for line in lines if not parses(line)]
    assert not wrong, capsys.readouterr().err


@pytest.mark.usefixtures("parse_only")
@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("train glyphs --seed 3", True),
        ("train glyphs --sweep seed=0,1", True),
        ("paper run table2 --scale laptop", True),
        ("evaluate --help", True),
        ("train glyphs --sede 3", False),
        ("train glyfs", False),
        ("paper walk table2", False),
        ("paper run table2 --scale desk", False),
        ("evaluate", False),
        ("trian glyphs", False),
    ],
)
def test_a_wrong_command_line_would_be_noticed(line: str, right: bool) -> None:
    assert parses(line.split()) == right


PAGE = """
Say `firststep train a --x 1` or `firststep
evaluate b`, never `firststep.train` nor `firststep COMMAND --help`.

    firststep compare c d ...    # a comment
    firststep evaluate ... --seed 1
    host-1$ firststep data e
    torchrun --nproc-per-node 2 \\
        -m firststep train f

```bash
ONE=1 firststep demo
```

<!-- snippet: skip because the reader brings it -->
```python
missing()
```

<!-- snippet: given
x = 2
-->
<!-- snippet: with `x + 1` for `x + 1000` -->
```python
y = x + 1000
```
"""


def test_how_a_page_is_read() -> None:
    lines = [" ".join(line) for line in command_lines(Path(), PAGE)]
    assert sorted(lines) == [
        "compare c d",
        "data e",
        "demo",
        "evaluate RUN --seed 1",
        "evaluate b",
        "train a --x 1",
        "train f",
    ]
    first, second = snippets(ROOT / "page.md", PAGE)
    assert first.skipped == "the reader brings it"
    assert PAGE.splitlines()[second.line - 1] == "y = x + 1000"
    namespace: dict[str, object] = {}
    second.run(namespace)
    assert namespace["y"] == 3


@pytest.mark.parametrize("note", ["skip", "skip because", "perhaps", "with `a` for `not there`"])
def test_a_note_that_says_nothing_is_refused(note: str) -> None:
    with pytest.raises(ValueError, match=r"page\.md"):
        list(snippets(ROOT / "page.md", f"<!-- snippet: {note} -->\n```python\npass\n```\n"))


def test_an_error_is_shown_at_its_line_of_the_page() -> None:
    snippet = Snippet(ROOT / "page.md", 40, "1 / 0\n")
    with pytest.raises(ZeroDivisionError) as raised:
        snippet.run({})
    assert raised.traceback[-1].lineno == 39  # counted from 0


def test_the_two_commands_are_named() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
