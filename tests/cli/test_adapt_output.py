"""Output and files of adapt: tables that fit the terminal, and results that outlive a failed export."""

from __future__ import annotations

import csv
import io
import re
import shutil
from pathlib import Path

import pytest

from firststep.cli import main
from firststep.training import builtin_models
from runs import TINY_FLAGS
from striped import bars, write_support_and_query

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("run") / "run"
    assert main(["train", "--head", "zero", *TINY_FLAGS, "--updates", "1", "--out", str(folder)]) == 0
    return str(folder)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_support_and_query(tmp_path)
    return tmp_path


def test_names_keep_the_end_that_tells_them_apart_and_wrong_answers_are_marked(
    run: str, here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    deep = Path("a-folder-with-a-long-name/and-another-one-within-it/which-is-not-the-last/query")
    shutil.copytree("query", deep)
    (deep / "c0" / "0.png").rename(deep / "c1" / "9.png")  # so that an answer is wrong
    assert main(["adapt", run, "--support", "support", "--query", str(deep), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert main(["adapt", run, "--support", "support", "--query", str(deep)]) == 0
    lines = "".join(capsys.readouterr()).splitlines()
    assert max(len(line) for line in lines if "│" in line) <= 80
    shown = [line for line in lines if ".png │" in line]
    for row, line in zip(rows, shown, strict=True):
        assert f"/{Path(row['image']).parent.name}/{Path(row['image']).name} " in line
        assert ("wrong" in line) == (row["label"] != row["class"])
    assert any("wrong" in line for line in shown)


def test_names_that_differ_at_their_start_are_shown_whole(
    run: str, here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    end = "the-same-long-name-of-a-folder-in-both-of-these-places/and-more"
    for start in "ab":
        bars(here / start / end / "0.png", 0, 0)
    (here / "query.csv").write_text(f"image,label\na/{end}/0.png,c0\nb/{end}/0.png,c0\n")
    assert main(["adapt", run, "--support", "support", "--query", "query.csv"]) == 0
    shown = capsys.readouterr().out
    assert "│ a/the-same" in shown
    assert "│ b/the-same" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_many_classes_do_not_make_the_output_wide(
    run: str, here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for number in range(20):
        for kind in ("many", "asked"):
            bars(here / kind / f"a class with the number {number}" / "0.png", number % 5, number)
    assert main(["adapt", run, "--support", "many", "--query", "asked", "--steps", "1"]) == 0
    shown, said = capsys.readouterr()
    assert max(map(len, shown.splitlines())) <= 80
    assert "adapted to 20 classes in 1 step;" in said
    assert "1 steps" not in said


def test_help_names_every_model_that_is_shipped(capsys: Captured) -> None:
    for command in ("adapt", "evaluate", "compare", "diagnose", "page"):
        assert main([command, "--help"]) == 0
        shown = re.sub(r"[\s│]+", "", capsys.readouterr().out)
        assert ",".join(builtin_models()) in shown
    assert "builtin:photos" in builtin_models()


UNTRACEABLE = """
from torch import nn

class Net(nn.Module):
    def __init__(self, ways):
        super().__init__()
        self.fc = nn.Linear(256, ways)

    def forward(self, images):
        rows = images.flatten(1)
        return self.fc(rows if float(rows.detach().sum()) > -1e9 else -rows)
"""


@pytest.mark.slow
def test_a_failed_export_loses_nothing_else(here: Path, capsys: Captured) -> None:
    (here / "untraceable.py").write_text(UNTRACEABLE)
    flags = ["--network", "untraceable:Net", *TINY_FLAGS[2:], "--updates", "1", "--conditioning", "none"]
    assert main(["train", *flags, "--out", "run"]) == 0
    capsys.readouterr()
    command = ["adapt", "run", "--support", "support", "--query", "query", "--format", "csv"]
    assert main([*command, "--export", "model.pt2", "model.safetensors"]) == 2
    shown, said = capsys.readouterr()
    assert len(list(csv.DictReader(io.StringIO(shown)))) == 4
    assert "cross-validated accuracy" in said
    (error,) = [line for line in said.splitlines() if line.startswith("firststep: ")]
    assert error.startswith("firststep: torch.export cannot trace Net (")
    assert not (here / "model.pt2").exists()
    assert (here / "adapted" / "confusion.png").is_file()
    for model in ("adapted", "model.safetensors"):  # the other file is written
        assert main(["predict", model, "query", "--format", "csv"]) == 0


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_full_standard_output_is_one_line(
    format: str, run: str, here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        command = ["adapt", run, "--support", "support", "--query", "query", "--format", format]
        assert main(command) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if not line.endswith(" ...")]
    assert said == ["firststep: cannot write the output: No space left on device"]
