"""The public interface is typed: a user's module passes mypy and pyright, and a wrong one does not.

``make types`` runs mypy over it, with the cache of everything else; alone, mypy would read all of torch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SNIPPET = Path(__file__).parent / "user" / "snippet.py"
WRONG = """
import firststep as fs
meta = fs.MetaLearner("no network", steps=2)
fs.maml(rat=0.1)
fs.no_such_name
"""
WRONG_LINES = [3, 4, 5]


def test_make_types_includes_the_users_module() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert str(SNIPPET.parent.relative_to(ROOT)) in settings["files"]
    assert (ROOT / "src" / "firststep" / "py.typed").is_file()


def errors_of_pyright(folder: Path, file: str) -> list[int]:
    """Return the lines with an error."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, file],
        cwd=folder,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    return sorted(each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error")


@pytest.mark.skipif(shutil.which("node") is None, reason="pyright needs node, which is not installed")
def test_pyright_accepts_the_users_module_and_no_wrong_one(tmp_path: Path) -> None:
    shutil.copy(SNIPPET, tmp_path / "snippet.py")
    (tmp_path / "wrong.py").write_text(WRONG)
    assert errors_of_pyright(tmp_path, "snippet.py") == []
    assert errors_of_pyright(tmp_path, "wrong.py") == WRONG_LINES


@pytest.mark.usefixtures("clean_registries")
def test_the_module_runs(tmp_path: Path) -> None:
    """The types that the checkers infer are the true ones."""
    namespace: dict[str, object] = {}
    exec(compile(SNIPPET.read_text(), str(SNIPPET), "exec"), namespace)
    run = namespace["meta_train"]
    assert callable(run)
    assert run(tmp_path / "run").at(0).shape == (2,)
