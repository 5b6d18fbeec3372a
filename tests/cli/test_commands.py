"""The commands as people type them: output, files, exit codes, and one clear line for what is wrong."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file

from firststep.cli import COMMANDS, main
from firststep.training import RECIPES
from runs import TINY_FLAGS, tiny_run, width
from warm_cli import WarmCommands

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    tiny_run(folder / "plain", conditioning="none")
    tiny_run(folder / "conditioned")
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def image_folders(folder: Path, classes: int = 5, each: int = 2, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    for number in range(classes):
        (folder / f"class{number}").mkdir(parents=True)
        for index in range(each):
            pixels = rng.integers(0, 255, (20 + number, 24, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"class{number}" / f"{index}.png")
    return folder


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_reads_well_and_exits_with_0(command: str | None, capsys: Captured) -> None:
    assert main([*([command] if command else []), "--help"]) == 0
    shown = capsys.readouterr().out
    assert "usage: firststep" in shown
    if command == "train":
        assert all(name in shown for name in RECIPES)
        assert "--gamma" in shown


def test_train_evaluate_compare_from_the_real_command_line(warm: WarmCommands, tmp_path: Path) -> None:
    def firststep(*arguments: str) -> str:
        done = warm.run(arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "firststep evaluate" in firststep("train", "demo", *TINY_FLAGS, "--out", "a")
    firststep("train", "demo", *TINY_FLAGS, "--conditioning", "none", "--out", "b")
    shown = firststep("evaluate", "a", "--episodes", "3", "--steps", "0", "1", "2")
    assert "condition number" in shown
    shown = firststep("compare", "b", "a", "--episodes", "3", "--steps", "0", "1", "2")
    assert "−" in shown  # the column of paired differences
    for ending in ("html", "csv", "md", "png"):
        assert (tmp_path / "comparison" / f"comparison.{ending}").stat().st_size > 100
    assert width(tmp_path / "comparison" / "comparison.png") > 1000


def test_default_folder_and_recipe_values(here: Path, capsys: Captured) -> None:
    assert main(["train", "demo", *TINY_FLAGS, "--seed", "7"]) == 0
    folder = here / "runs" / "glyphs-conv4-maml-variance-cls-5way-2shot-seed7"
    record = json.loads((folder / "run.json").read_text())
    assert record["config"]["rate"] == 0.1
    assert record["config"]["backbone"] == "conv4"
    assert str(folder.relative_to(here)) in capsys.readouterr().out


def test_adapt_predicts_and_writes_weights(runs: Path, here: Path, capsys: Captured) -> None:
    support, queries = image_folders(here / "support"), image_folders(here / "more", 1, 3, seed=1) / "class0"
    base = ["adapt", str(runs / "conditioned"), "--support", str(support)]
    assert main([*base, "--query", str(queries), "--format", "csv"]) == 0
    captured = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(captured.out)))
    assert [Path(row["image"]).name for row in rows] == ["0.png", "1.png", "2.png"]
    for row in rows:
        share = [float(row[f"class{i}"]) for i in range(5)]
        assert sum(share) == pytest.approx(1, abs=1e-5)
        assert row["class"] == f"class{int(np.argmax(share))}"
    assert "held-out folds" in captured.err  # steps chosen automatically
    assert "classifier.weight" in load_file(here / "adapted" / "adapted.safetensors")
    assert json.loads((here / "adapted" / "adapted.json").read_text())["classes"][0] == "class0"
    assert main([*base, "--query", str(queries / "0.png"), "--format", "json", "--steps", "1"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_a_query_s_answer_depends_on_no_other_query_unless_asked(
    runs: Path, here: Path, capsys: Captured
) -> None:
    support, queries = image_folders(here / "support"), image_folders(here / "more", 1, 3, seed=1) / "class0"

    def answer(query: Path, *flags: str) -> dict[str, float]:
        command = [
            "adapt",
            str(runs / "plain"),
            "--support",
            str(support),
            "--steps",
            "2",
            "--format",
            "json",
        ]
        assert main([*command, "--query", str(query), *flags]) == 0
        first: dict[str, float] = json.loads(capsys.readouterr().out)[0]["all"]
        return first

    assert answer(queries) == answer(queries / "0.png")
    assert answer(queries, "--transductive") != answer(queries / "0.png", "--transductive")


OWN_MODULE = """
from torch import nn
def network():
    body = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
    return nn.Sequential(*body, nn.Linear(16, 5))
"""


def test_diagnose_a_run_and_a_module_of_one_s_own(runs: Path, here: Path, capsys: Captured) -> None:
    assert main(["diagnose", str(runs / "plain"), "--tasks", "2", "--shots", "2"]) == 0
    shown = capsys.readouterr().out
    assert all(subset in shown for subset in ("cls", "emb", "ebn", "all"))
    assert width(here / "spectrum.png") > 500
    (here / "mine.py").write_text(OWN_MODULE)
    flags = ["--classifier", "4", "--tasks", "2", "--shots", "1", "--plot", "own.svg"]
    assert main(["diagnose", "mine:network", "--subsets", "cls", "all", *flags]) == 0
    assert (here / "own.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["train", "glyfs"], "unknown recipe 'glyfs'; did you mean glyphs?"),
        (["trian"], "unknown command 'trian'; did you mean train?"),
        (["train", "--method", "sgd"], "--method sgd is unknown; choose from maml"),
        (["train", "--resume", "nowhere"], "nowhere is not a folder"),
        (["evaluate", "empty"], "empty is not the folder of a run: it has no run.json"),
        (["evaluate", "builtin:letters"], "there is no built-in model 'letters'; there are"),
        (["evaluate", "RUN", "--episodes", "1"], "--episodes must be at least 2"),
        (["diagnose", "RUN", "--ways", "6"], "--ways 6: the model has learned 5 classifier rows"),
        (["evaluate", "RUN", "--ways", "6"], "cannot tell 6 classes apart; train with head shared, zero"),
        (["evaluate", "RUN", "--subset", "conv"], "unknown parameter subset 'conv'"),
        (["evaluate", "RUN", "--data", "folder", "--data-path", "empty"], "empty"),
        (["evaluate", "corrupt"], "is damaged"),
        (["evaluate", "foreign"], "does not fit the network of this run's configuration"),
        (["evaluate", "unfinished"], "has no best checkpoint yet; resume it with"),
        (["compare"], ""),
        (["compare", "RUN", "nowhere"], "nowhere is not a folder"),
        (
            ["adapt", "RUN", "--support", "nowhere"],
            "nowhere is not a folder; a support set is a folder with one subfolder per class",
        ),
        (
            ["adapt", "RUN", "--support", "six"],
            "class3, class4, class5; the model has learned 5 classifier rows, one for each class",
        ),
        (["adapt", "RUN", "--support", "one"], "one has 1 class folders: class0; a task needs at least 2"),
        (["adapt", "RUN", "--support", "hollow"], "hollow/class4 has no images"),
        (["adapt", "RUN", "--support", "five", "--query", "text.png"], "text.png is not an image"),
        (["adapt", "RUN", "--support", "five", "--query", "nowhere"], "nowhere does not exist"),
        (["adapt", "RUN", "--support", "five", "--steps", "many"], "--steps takes a number or auto"),
        (["diagnose", "nothing:here"], "cannot import 'nothing:here'"),
        (["diagnose", "RUN", "--classifier", "fc"], "--classifier, --image-size, --rate are for modules"),
        (["diagnose", "RUN", "--tasks", "0"], "--tasks must be at least 1"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    arguments: list[str], line: str, runs: Path, here: Path, capsys: Captured
) -> None:
    (here / "empty").mkdir()
    (here / "text.png").write_text("not an image")
    image_folders(here / "five")
    image_folders(here / "six", classes=6)
    image_folders(here / "one", classes=1)
    shutil.rmtree(image_folders(here / "hollow") / "class4")
    (here / "hollow" / "class4").mkdir()
    for name in ("corrupt", "foreign", "unfinished"):
        shutil.copytree(runs / "plain", here / name)
    best = "checkpoints/best.safetensors"
    (here / "corrupt" / best).write_bytes((here / "corrupt" / best).read_bytes()[:500])
    record = (here / "foreign" / "run.json").read_text()
    (here / "foreign" / "run.json").write_text(record.replace('"filters": 4', '"filters": 6'))
    (here / "unfinished" / best).unlink()
    status = main([str(runs / "plain") if argument == "RUN" else argument for argument in arguments])
    errors = capsys.readouterr().err
    assert status == 2
    assert line in errors
    assert "Traceback" not in errors
    if line:
        assert len(errors.strip().splitlines()) == 1, errors


def test_debug_shows_where_an_error_came_from(warm: WarmCommands) -> None:
    done = warm.run(["train", "glyfs", "--debug"])
    assert done.returncode != 0
    assert "Traceback" in done.stderr
