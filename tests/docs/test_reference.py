"""The API reference has every public name, and every name an example that runs."""

from __future__ import annotations

import contextlib
import doctest
from pathlib import Path
from typing import Any

import pytest
import torch

from docsite import build as building
from docsite.build import BuildFailed, build
from docsite.definitions import definition, exported
from docsite.examples import FLAGS, examples, start
from docsite.public_names import BETWEEN_PACKAGES, GROUPS
from docsite.reference import FOLDER, page, page_name, start_of
from docsite.references import unresolved

NAMES = [(module, name) for module, groups in GROUPS.items() for names in groups.values() for name in names]


@pytest.mark.parametrize("module", GROUPS)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    documented = {name for group, name in NAMES if group == module}
    above = set(exported("firststep")) if module != "firststep" else set()
    expected = set(exported(module)) - above - BETWEEN_PACKAGES.get(module, set())
    assert documented == expected


@pytest.mark.parametrize("module", GROUPS)
def test_the_page_is_what_the_command_writes(module: str) -> None:
    assert (FOLDER / page_name(module)).read_text() == page(module), "make docs-write"


def test_every_name_has_a_docstring_and_an_example_and_few_are_skipped() -> None:
    docstrings = {f"{module}.{name}": definition(module, name).docstring for module, name in NAMES}
    assert not [name for name, text in docstrings.items() if "Examples:\n" not in text]
    assert not [name for name, text in docstrings.items() if text.lstrip().startswith("Examples:")]
    skipped = [name for name, text in docstrings.items() if "+SKIP" in text]
    assert len(skipped) <= 2, skipped


class Session:
    """A folder and the names that the examples of several pages start from; made once, because they train."""

    def __init__(self, folder: Path, module: str) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "examples"}
        with contextlib.chdir(folder):
            exec(compile(start(module), "docs/reference/README.md", "exec"), self.names)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Session]:
    with torch.random.fork_rng():
        return {
            start_of(module): Session(tmp_path_factory.mktemp("examples"), module)
            for module in ("firststep", "firststep.data", "firststep.training")
        }


@pytest.mark.usefixtures("clean_registries")
def test_examples_run(sessions: dict[str, Session]) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    for module in GROUPS:
        session = sessions[start_of(module)]
        with contextlib.chdir(session.folder), torch.random.fork_rng():
            for test in examples(module, dict(session.names)):
                assert test.examples, test.name
                runner.run(test, out=said.append)
    assert not runner.summarize(verbose=False).failed, "".join(said)


def test_a_wrong_example_would_be_noticed() -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    test = parser.get_doctest("Examples:\n    >>> 1 + 1\n    3\n", {}, "wrong", None, 0)
    assert runner.run(test, out=lambda text: None).failed == 1


def test_every_cross_reference_in_a_docstring_names_something() -> None:
    assert unresolved() == []


SOURCES = {
    "__init__.py": "",
    "first.py": """
class A:
    \"\"\":meth:`b`, :meth:`A.b`, :mod:`second`, :func:`somewhere.second.f`, :class:`json.JSONDecoder`\"\"\"
    def b(self): pass
""",
    "second.py": """
def f():
    \"\"\"Unlike :func:`g`, :class:`A` and :func:`somewhere.h`.\"\"\"
""",
}


def test_a_dead_cross_reference_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "somewhere"
    package.mkdir()
    for name, source in SOURCES.items():
        (package / name).write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    dead = unresolved(package)
    assert dead == [f"somewhere/second.py:3: {name} does not exist" for name in ("g", "A", "somewhere.h")]
    monkeypatch.setattr(building, "unresolved", lambda: dead)
    with pytest.raises(BuildFailed, match=r"somewhere\.h does not exist"):
        build(tmp_path / "source", tmp_path / "site")
