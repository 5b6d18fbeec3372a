"""``firststep --import MODULE``: what a user's own file registers is known to commands and their workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from firststep.cli import main
from firststep.utils.user_modules import VARIABLE, import_user_modules
from runs import TINY_FLAGS
from warm_cli import WarmCommands

OWN_METHOD = """
from firststep import METHODS, Method, maml

METHODS.register("half-maml", lambda rate, steps: Method(rule=maml(rate=0.005)))
"""


Firststep = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def firststep(warm: WarmCommands, tmp_path: Path) -> Firststep:
    (tmp_path / "half_maml.py").write_text(OWN_METHOD)

    def firststep(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return warm.run(arguments, cwd=tmp_path, env={**os.environ, **environment})

    return firststep


def test_a_method_from_the_working_folder_is_trained(firststep: Firststep, tmp_path: Path) -> None:
    flags = ["train", "demo", *TINY_FLAGS, "--method", "half-maml", "--out", "run"]
    done = firststep("--import", "half_maml", *flags)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "run.json").read_text())["config"]["method"] == "half-maml"
    unknown = firststep(*flags)
    assert unknown.returncode == 2
    assert "half-maml" in unknown.stderr


@pytest.mark.slow
def test_worker_processes_know_it_too(firststep: Firststep, tmp_path: Path) -> None:
    flags = ["train", "demo", *TINY_FLAGS, "--sweep", "method=maml,half-maml", "--out", "runs"]
    done = firststep(*flags, FIRSTSTEP_IMPORT="half_maml")
    assert done.returncode == 0, done.stdout + done.stderr
    methods = {json.loads(p.read_text())["config"]["method"] for p in tmp_path.glob("runs/**/run.json")}
    assert methods == {"maml", "half-maml"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_names_are_gathered_from_all_flags_and_the_environment(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("gathered_a", "gathered_b", "gathered_c", "gathered_d"):
        (here / f"{name}.py").write_text(f"print('imported {name}')")
    monkeypatch.setenv(VARIABLE, "gathered_a")
    flags = ["--import", "gathered_b", "--import=gathered_c,gathered_d"]
    assert main([*flags, "parameters", "--help"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("imported")] == [
        f"imported gathered_{letter}" for letter in "abcd"
    ]
    assert os.environ[VARIABLE] == "gathered_a,gathered_b,gathered_c,gathered_d"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--import", "nowhere_at_all", "parameters"],
            "cannot import nowhere_at_all: there is no such module",
        ),
        (["--import", "failing", "parameters"], "cannot import failing: ZeroDivisionError: division by zero"),
        (["--import", "lacking", "parameters"], "cannot import lacking: No module named 'not_installed'"),
        (["--import", "failing.py", "parameters"], "write the module as in an import statement"),
        (["--import"], "--import takes the name of a module"),
    ],
)
def test_what_cannot_be_imported_is_one_line(
    arguments: list[str], line: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "failing.py").write_text("1 / 0")
    (here / "lacking.py").write_text("import not_installed")
    assert main(arguments) == 2
    errors = capsys.readouterr().err
    assert line in errors
    assert len(errors.strip().splitlines()) == 1


def test_nothing_asked_for_changes_nothing(here: Path) -> None:
    before = list(sys.path)
    import_user_modules()
    assert sys.path == before
    assert os.environ[VARIABLE] == ""
