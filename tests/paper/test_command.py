"""``firststep paper``: every experiment from nothing to its table or figure, at smoke scale."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from firststep.cli import main
from firststep.paper import EXPERIMENTS, ExperimentSettings, Scale, published
from firststep.training.sessions import training_time
from runs import width
from selection import slow_except

HERE = ("--scale", "smoke", "--executor", "inline")
# ResNets are slow even here: one of them, the smallest task.
ONLY = {
    "table4": ("conv", "resnet10 1-shot maml"),
    "figure1": ("conv",),
    "rivals": ("gap", "modgrad", "gauss-newton"),
    "every-step": ("last step", "shared, every step", "K = 1"),
}

QUICK = ("figure2", "table3", "loss-ablation", "figure5", "heads")
"""A figure of curves, larger steps, the validation split, a figure of parameters, other heads."""


def cells(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, comment="#")


@pytest.mark.parametrize("name", slow_except(EXPERIMENTS, QUICK))
def test_every_experiment_from_nothing_to_its_files(
    name: str, smoke_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    only = ("--only", *ONLY[name]) if name in ONLY else ()
    status = main(["paper", "run", name, *HERE, "--runs", str(smoke_runs), "--out", str(tmp_path), *only])
    shown = capsys.readouterr()
    assert status == 0, shown.err
    chosen = EXPERIMENTS[name]()
    assert chosen.title in shown.out
    folder = tmp_path / name / "glyphs-smoke"
    text = (folder / "README.md").read_text(encoding="utf-8")
    for fact in ("command", "scale", "data fingerprint", "training seed", "code", "torch", "hardware"):
        assert f"\n- {fact}: " in text
    assert f"firststep paper run {name} --scale smoke --data glyphs" in text
    assert "filters 4, updates 2, meta batch 1" in text
    assert " s in all for " in text  # training time
    rows = ExperimentSettings(Scale("smoke"), {"glyphs": None}).rows(chosen)
    run = [row for row in rows if name not in ONLY or any(word in row.label for word in ONLY[name])]
    frame = cells(folder / "numbers.csv")
    ours = frame[frame["accuracy"].notna()]
    labels = {row.label for row in run}
    assert labels <= set(ours["row"]) <= {row.label for row in rows}
    ours = ours[ours["row"].isin(labels)]  # others may be there: another experiment has trained them
    tested = sum(len(test.settings.steps) for row in run for test in row.tests)
    assert len(ours) == tested
    assert ours["accuracy"].between(0, 100).all()
    assert ours["condition_number"].ge(1).all()
    assert ours["parameters"].gt(0).all()
    assert set(frame.loc[frame["paper_accuracy"].notna(), "row"]) == set(chosen.paper.get("row", []))
    compared = [row for row in run if row.over is not None]
    assert set(ours.loc[ours["gain"].notna(), "row"]) == {row.label for row in compared}
    if chosen.figure is not None:
        assert width(folder / "figure.png") > 600
        with Image.open(folder / "figure.png") as figure:
            about = figure.info["Description"]
        assert "firststep paper run" in about
        assert "scale: smoke" in about


@pytest.mark.slow
def test_what_is_done_is_not_done_again_and_all_results_come_on_one_page(
    smoke_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--runs", str(smoke_runs), "--out", str(tmp_path))
    assert main(["paper", "run", "table3", *HERE, *where]) == 0
    folders = {
        path.parent: training_time(path.parent) for path in smoke_runs.glob("*conv6*5way-5shot*/run.json")
    }
    capsys.readouterr()
    assert main(["paper", "run", "table3", "figure2", *HERE, *where, "--only", "conv6"]) == 0
    assert "trained" not in capsys.readouterr().err
    assert folders
    assert {folder: training_time(folder) for folder in folders} == folders
    assert main(["paper", "report", "--results", str(tmp_path)]) == 0
    page = (tmp_path / "paper.html").read_text(encoding="utf-8")
    assert EXPERIMENTS["table3"]().title in page
    assert 'id="figure2-glyphs-smoke"' in page
    assert "Not run here: figure1, table1, table2" in page
    assert 'src="http' not in page


def _cifar_fs(root: Path) -> Path:
    """Write a small copy: six classes per split, eight images each."""
    root.mkdir()
    generator = np.random.default_rng(0)
    for split in ("train", "val", "test"):
        labels = [label for label in range(6) for _ in range(8)]
        data = generator.integers(0, 256, (len(labels), 32, 32, 3), dtype=np.uint8)
        with open(root / f"CIFAR_FS_{split}.pickle", "wb") as file:
            pickle.dump({"data": data, "labels": labels}, file)
    return root


def test_table4_with_one_dataset_marks_the_rest_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = _cifar_fs(tmp_path / "cifar")
    flags = ["--scale", "smoke", "--data", f"cifar-fs={data}", "--partial", "--runs", str(tmp_path / "runs")]
    flags += ["--out", str(tmp_path)]
    assert main(["paper", "run", "table4", *flags, "--executor", "inline", "--only", "conv4 1-shot"]) == 0
    capsys.readouterr()
    assert main(["paper", "show", "table4", *flags]) == 0
    assert "Not given, hence missing: cub" in capsys.readouterr().out
    text = (tmp_path / "table4/cifar-fs-smoke/README.md").read_text(encoding="utf-8")
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if " | ours | " in line}
    assert len(lines) == 80
    # steps 0 to 5 and 10 are tested at this scale, 25 to 100 are not
    assert lines["cifar-fs conv4 1-shot conditioned"].count("±") == 7
    assert lines["cifar-fs conv4 1-shot conditioned"].count(" – ") == 3
    assert lines["cub conv4 1-shot conditioned"].count("±") == 0
    frame = cells(tmp_path / "table4/cifar-fs-smoke/numbers.csv").set_index(["row", "step"])
    depths = published("depths")
    for method in ("maml", "conditioned"):
        printed = depths[(depths["dataset"] == "cifar-fs") & (depths["backbone"] == "conv4")]
        printed = printed[(printed["shots"] == 1) & (printed["method"] == method) & (printed["step"] == 1)]
        line = frame.loc[(f"cifar-fs conv4 1-shot {method}", 1)]
        assert line["paper_accuracy"] == printed["accuracy"].item()
        assert line["difference"] == pytest.approx(line["accuracy"] - line["paper_accuracy"], abs=1e-3)
    absent = frame[frame["accuracy"].isna() & frame["paper_accuracy"].notna()]
    assert set(absent["paper_dataset"]) == set(depths["dataset"])
    assert str(data) not in text  # folders are nobody's business


def test_show_with_nothing_run_marks_everything_and_invents_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", "show", "table2", "figure2", "--runs", str(tmp_path), "--out", str(tmp_path)]) == 0
    assert "nothing has been run yet" in capsys.readouterr().out
    assert cells(tmp_path / "table2/glyphs-laptop/numbers.csv")["accuracy"].isna().all()
    assert width(tmp_path / "figure2/glyphs-laptop/figure.png") > 600
    assert main(["paper", "report", "--results", str(tmp_path)]) == 0
    assert "0 results" in (tmp_path / "paper.html").read_text(encoding="utf-8")


def test_a_chosen_name_never_overwrites_another_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["paper", "show", "table2", "--runs", str(tmp_path), "--out", str(tmp_path), "--name", "mine"]
    assert main(words) == 0
    assert main(words) == 0
    page = tmp_path / "table2" / "glyphs-mine" / "README.md"
    before = page.read_bytes()
    assert b"--name mine" in before
    assert main([*words, "--updates", "7"]) == 2
    assert "choose another --name" in capsys.readouterr().err
    assert page.read_bytes() == before


def test_the_plan_is_measured_and_trains_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--scale", "smoke", "--runs", str(tmp_path / "runs"), "--only", "none-5way-5shot", "--dry-run"]
    assert main(["paper", "run", "table1", "table2", *flags]) == 0
    shown = capsys.readouterr().out
    plain = [line for line in shown.splitlines() if "-none-" in line]
    assert len(plain) == 1
    assert "to do" in plain[0]
    assert "table1, table2" in plain[0]
    assert " s " in plain[0]
    assert "GiB" in plain[0]
    assert "An estimate" in shown
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_failed_run_is_named_and_the_rest_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 20 shots and 30 queries are more than glyphs have: that run fails.
    flags = ["--only", "5-way 1-shot maml", "5-way 20-shot maml", "--queries", "30"]
    flags += ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]
    # In processes of their own, as users have it.
    assert main(["paper", "run", "ways-and-shots", "--scale", "smoke", *flags]) == 2
    shown = capsys.readouterr()
    assert "1 of 2 runs failed: glyphs-conv6-maml-none-5way-20shot" in shown.err
    frame = cells(tmp_path / "ways-and-shots/glyphs-smoke-queries-30/numbers.csv")
    assert set(frame.loc[frame["accuracy"].notna(), "row"]) == {"5-way 1-shot maml"}


def test_list_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in EXPERIMENTS)
    assert main(["paper", "show", "tabel2"]) == 2
    assert "did you mean table2" in capsys.readouterr().err
    assert main(["paper", "run", "table1", "--address", "x"]) == 2
    assert "--address goes with --executor ray" in capsys.readouterr().err
    assert main(["paper", "run"]) == 2
