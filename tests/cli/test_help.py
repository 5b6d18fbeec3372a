"""``--help`` of the commands: at once, in groups, and within 80 columns."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from firststep.backbones import BACKBONES
from firststep.cli.names import any_of
from firststep.data import DATASETS
from firststep.training import RECIPES, TrainConfig

GROUPS = ["options", "data options", "network options", "method options", "outer-loop options"]
WITHOUT_TORCH = ["demo", "data", "pretrain", "train", "adapt", "predict", "parameters"]
"""The defaults of the other commands' flags come from modules that import torch."""
SHOW_LOADED = """
import json, sys
from firststep.cli import main

sys.argv = ["firststep", *{arguments!r}]
status = main()
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})), file=sys.stderr)
raise SystemExit(status)
"""


@functools.cache
def help_of(*arguments: str) -> tuple[str, list[str]]:
    """Return the output of a real process and the packages that it has imported."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW_LOADED.format(arguments=[*arguments, "--help"])],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(done.stderr.splitlines()[-1])


@pytest.mark.parametrize("command", [*WITHOUT_TORCH, "train demo", "train --sweep"])
def test_help_does_not_wait_for_torch(command: str) -> None:
    shown, loaded = help_of(*command.split())
    assert "usage: firststep" in shown
    assert not {"torch", "matplotlib", "pandas"} & set(loaded)
    assert max(map(len, shown.splitlines())) <= 80


def test_the_flags_of_train_are_in_groups() -> None:
    shown, _ = help_of("train")
    assert re.findall(r"^╭─ (.*?) ─", shown, re.MULTILINE) == [*GROUPS, "running options"]
    flags = re.findall(r"^│ --([\w-]+)", shown, re.MULTILINE)
    fields = {field.name.replace("_", "-") for field in dataclasses.fields(TrainConfig)}
    assert set(flags) == {*fields, "out", "backend"}
    assert len(flags) == len(set(flags))
    for first, later in (("data", "cache"), ("backbone", "freeze"), ("method", "subset"), ("updates", "ema")):
        assert flags.index(first) < flags.index(later)
    for name, make in RECIPES.items():  # a line each
        about = (make.__doc__ or "").splitlines()[0]
        assert re.search(rf"^  {name} +{re.escape(about)}$", shown, re.MULTILINE)
    assert max(map(len, shown.splitlines())) <= 80


def test_the_help_of_resume_needs_no_folder() -> None:
    shown, _ = help_of("train", "--resume")
    assert "--restart" in shown


@pytest.mark.parametrize("command", ["train", "pretrain", "data", "parameters"])
def test_datasets_and_backbones_are_those_that_are_registered(command: str) -> None:
    shown = " ".join(help_of(command)[0].replace("│", " ").split())
    if command != "parameters":
        assert any_of(DATASETS) in shown
    if command != "data":
        assert any_of(sorted(BACKBONES)) in shown


def test_a_backbone_of_the_user_is_in_the_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["from firststep import BACKBONES", "BACKBONES.register('mine', BACKBONES['conv4'])"]
    (tmp_path / "my_backbone.py").write_text("\n".join(lines))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "firststep", "--import", "my_backbone", "train", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "or mine." in " ".join(shown.replace("│", " ").split())


def test_the_groups_make_up_the_configuration(tmp_path: Path) -> None:
    from firststep.cli.settings import Settings

    for make in RECIPES.values():
        assert Settings.of(make()).joined() == make()
