"""adapt and predict as people type them: folders, CSV files, labelled queries, exports."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from firststep.cli import main
from runs import TINY_FLAGS, width
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


def answers(capsys: Captured) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return rows


def test_labelled_queries_have_an_accuracy_and_a_confusion_matrix(
    run: str, here: Path, capsys: Captured
) -> None:
    assert main(["adapt", run, "--support", "support", "--query", "query"]) == 0
    shown, said = capsys.readouterr()
    assert "most often taken for" in shown
    assert "of 4 right); figure: adapted/confusion.png" in shown
    assert width(here / "adapted" / "confusion.png") > 300
    for name in ("adapted network", "nearest-means", "ridge", "logistic"):
        assert name in said
    assert "11 support images, each held out once in 2 folds" in said
    assert "probabilities are not calibrated: that takes 20 support images" in said
    assert main(["adapt", run, "--support", "support", "--query", "query", "--format", "csv"]) == 0
    shown, said = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(shown)))
    assert [row["label"] for row in rows] == ["c0", "c0", "c1", "c2"]
    right = sum(row["label"] == row["class"] for row in rows)
    assert f"({right} of 4 right)" in said


def test_a_list_of_labels_is_the_same_as_folders(run: str, here: Path, capsys: Captured) -> None:
    for kind in ("support", "query"):
        files = sorted((here / kind).glob("*/*.png"))
        lines = [f"{file.relative_to(here)},{file.parent.name}" for file in files]
        (here / f"{kind}.csv").write_text("\n".join(["image,label", *lines]) + "\n")
    flags = ["adapt", run, "--format", "json"]
    assert main([*flags, "--support", "support", "--query", "query"]) == 0
    by_folder = answers(capsys)
    assert main([*flags, "--support", "support.csv", "--query", "query.csv"]) == 0
    assert answers(capsys) == by_folder


@pytest.mark.parametrize("classifier", ["steps", "ridge"])
def test_predict_says_what_adapt_said(classifier: str, run: str, here: Path, capsys: Captured) -> None:
    exported = ["--export", "model.safetensors", "--classifier", classifier]
    adapt = ["adapt", run, "--support", "support", "--query", "query/c0", "--format", "json", *exported]
    assert main(adapt) == 0
    expected = answers(capsys)
    for model in ("adapted", "model.safetensors"):
        assert main(["predict", model, "query/c0", "--format", "json"]) == 0
        assert answers(capsys) == expected  # bit by bit
    assert main(["predict", "adapted", "query/c1/0.png", "query/c0"]) == 0
    assert capsys.readouterr().out.count(".png") == 3


def test_one_image_in_a_class_and_enough_to_calibrate(run: str, here: Path, capsys: Captured) -> None:
    (here / "support" / "c1" / "1.png").unlink()
    assert main(["adapt", run, "--support", "support"]) == 0
    said = capsys.readouterr().err
    assert "adapted to 3 classes in 2 steps; written" in said  # as trained
    assert "no accuracy can be estimated: a class has one image only" in said
    assert "probabilities are not calibrated" in said
    for number in range(3):
        for index in range(20, 28):
            bars(here / "support" / f"c{number}" / f"{index}.png", number, seed=index)
    assert main(["adapt", run, "--support", "support"]) == 0
    assert "probabilities are calibrated on 34 held-out support images (temp" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--query", "strange"], "strange: 'zebra' is not among the classes of the support set: c0, c1, c2"),
        (["--query", "empty"], "empty has no images"),
        (["--query", "no-label.csv"], "no-label.csv: image 1 has no label"),
        (["--support", "columns.csv"], "columns.csv: the first line must name the columns image,label"),
        (["--support", "lost.csv"], "lost.png does not exist"),
        (["--support", "none.csv"], "none.csv names no images"),
        (["--support", "one.csv"], "one.csv has 1 classes: a; a task needs at least 2"),
        (["--support", "missing.csv"], "missing.csv"),
        (["--export", "model.bin"], "cannot write model.bin: its name must end in .onnx or .pt2 or"),
        (["--export", "support"], "cannot write support: it is a folder"),
        (["--export", "m.pt2", "--transductive"], "leave out --transductive or --export"),
        (["--classifier", "ridge", "--steps", "3"], "--steps is for the adapted network"),
        (["--classifier", "rigde"], "--classifier rigde: did you mean ridge?"),
        (["--steps", "²"], "--steps takes a number or auto"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], line: str, run: str, here: Path, capsys: Captured
) -> None:
    bars(here / "strange" / "zebra" / "0.png", 0, 0)
    (here / "empty").mkdir()
    (here / "no-label.csv").write_text("image,label\nquery/c0/0.png,\n")
    (here / "columns.csv").write_text("file,class\na.png,b\n")
    (here / "lost.csv").write_text("image,label\nlost.png,b\n")
    (here / "none.csv").write_text("image,label\n")
    (here / "one.csv").write_text("image,label\nquery/c0/0.png,a\n")
    given = ["--support", "support", *arguments] if "--support" not in arguments else arguments
    assert main(["adapt", run, *given]) == 2
    said = capsys.readouterr().err.splitlines()
    errors = [text for text in said if not text.endswith(" ...")]
    assert len(errors) == 1
    assert line in errors[0]
    assert not (here / "adapted").exists()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nowhere", "x.png"], "x.png does not exist"),
        (["nowhere", "query"], "nowhere is not a model"),
        (["support", "query"], "support is not a folder of `firststep adapt`"),
        (["adapted"], "name the images or folders to classify"),
    ],
)
def test_predict_s_bad_input_is_one_line(
    arguments: list[str], line: str, here: Path, capsys: Captured
) -> None:
    assert main(["predict", *arguments]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert line in said
