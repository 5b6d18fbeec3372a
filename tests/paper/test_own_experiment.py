"""An experiment from outside: a user's file registers it, runs it and shows it through the public API."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from firststep.cli import main
from firststep.paper import EXPERIMENTS, FIGURES
from firststep.utils.registry import Registry

PAGE = Path(__file__).parents[2] / "docs" / "paper.md"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write the documented example as a user's own file."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "my_experiment.py"
    path.write_text(code, encoding="utf-8")
    return path


@pytest.fixture
def registered(file: Path) -> Iterator[str]:
    runpy.run_path(str(file))
    yield "head-only"
    EXPERIMENTS.unregister("head-only")


@pytest.mark.slow
def test_a_users_file_runs_its_experiment(file: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, file.name], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "| anil + conditioning | ours |" in done.stdout
    folder = tmp_path / "results" / "head-only" / "glyphs-smoke"
    assert done.stdout.rstrip().endswith(str(folder.relative_to(tmp_path)))
    cells = pd.read_csv(folder / "numbers.csv", comment="#")
    assert cells["accuracy"].notna().all()
    assert cells.loc[cells["row"] == "anil + conditioning", "gain"].notna().all()


def test_commands_know_a_registered_experiment(
    registered: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", "list"]) == 0
    assert "ANIL with and without the loss" in capsys.readouterr().out
    where = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]
    assert main(["paper", "run", registered, "--scale", "smoke", "--executor", "inline", *where]) == 0
    assert "ANIL on glyphs, 5-way 5-shot" in capsys.readouterr().out
    assert main(["paper", "report", "--results", str(tmp_path)]) == 0
    assert "ANIL on glyphs" in (tmp_path / "paper.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("registry", [EXPERIMENTS, FIGURES], ids=lambda registry: registry.kind)
def test_a_name_is_taken_once(registry: Registry[Any]) -> None:
    name = next(iter(registry))
    with pytest.raises(ValueError, match=f"already an? .* called '{name}'"):
        registry.register(name, None)
