"""Models with one row for all classes, from the command line: any number of classes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from firststep.cli import main
from firststep.training import load_trained, open_run
from runs import TINY_FLAGS, same_run, tiny_run

Captured = pytest.CaptureFixture[str]
FEW = ["--episodes", "2", "--steps", "0", "1", "2"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heads")
    tiny_run(folder / "plain", conditioning="none")
    for head in ("shared", "zero"):
        for conditioning in ("none", "variance"):
            out = folder / f"{head}-{conditioning}"
            flags = ["--head", head, "--conditioning", conditioning, *TINY_FLAGS, "--out", str(out)]
            assert main(["train", *flags]) == 0
    return folder


def support_folder(folder: Path, classes: int) -> Path:
    rng = np.random.default_rng(classes)
    for number in range(classes):
        (folder / f"class{number}").mkdir(parents=True)
        for index in range(2):
            pixels = rng.integers(0, 255, (20, 24, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"class{number}" / f"{index}.png")
    return folder


def test_the_checkpoint_holds_one_row(runs: Path) -> None:
    weights = load_file(runs / "shared-variance" / "checkpoints" / "best.safetensors")
    assert weights["network.classifier.weight"].shape == (1, 4)
    assert weights["network.classifier.bias"].shape == (1,)
    zero = load_file(runs / "zero-variance" / "checkpoints" / "last.safetensors")
    assert not zero["network.classifier.weight"].any()
    assert "optimiser/exp_avg/network.classifier.weight" not in zero
    assert open_run(runs / "zero-none").config.head == "zero"


@pytest.mark.parametrize("head", ["shared", "zero"])
@pytest.mark.parametrize("ways", [2, 7])
def test_evaluate_with_any_number_of_ways(head: str, ways: int, runs: Path, capsys: Captured) -> None:
    run = runs / f"{head}-variance"
    assert main(["evaluate", str(run), "--ways", str(ways), *FEW]) == 0
    assert f"{ways}-way 2-shot" in capsys.readouterr().out
    (stored,) = (run / "evaluations").glob(f"*-{ways}way-*.json")
    content = json.loads(stored.read_text())
    assert content["settings"]["ways"] == ways
    assert content["label"] == f"maml, {head} head + conditioning"
    if head == "zero":  # all logits are equal before the first step: the first class takes every sample
        assert np.array(content["metrics"]["accuracy"]["values"])[:, 0] == pytest.approx(1 / ways, abs=1e-6)


def test_fewer_ways_of_a_row_per_class(runs: Path) -> None:
    assert main(["evaluate", str(runs / "plain"), "--ways", "3", *FEW]) == 0
    trained = load_trained(runs / "plain")
    rows = trained.meta.network.get_parameter("classifier.weight")
    assert torch.equal(trained.meta.for_classes(3).network.get_parameter("classifier.weight"), rows[:3])


def test_compare_and_diagnose(
    runs: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("plain", "shared-none", "shared-variance", "zero-none", "zero-variance")
    assert main(["compare", *(str(runs / name) for name in names), *FEW, "--out", "both"]) == 0
    table = Path("both/comparison.md").read_text()
    for label in ("maml, shared head", "maml, shared head + conditioning", "maml, zero head"):
        assert label in table
    capsys.readouterr()
    flags = ["--tasks", "2", "--ways", "4", "--shots", "2"]
    assert main(["diagnose", str(runs / "shared-none"), *flags]) == 0
    out = capsys.readouterr().out
    assert "4-way" in out
    assert "emb" not in out
    assert main(["diagnose", str(runs / "shared-none"), "--subsets", "emb"]) == 2
    assert "nothing below the classifier has a gradient" in capsys.readouterr().err
    assert main(["evaluate", str(runs / "zero-none"), "--subset", "emb"]) == 2


@pytest.mark.parametrize(("run", "classes"), [("shared-none", 3), ("zero-variance", 8), ("plain", 3)])
def test_adapt_to_folders(
    run: str, classes: int, runs: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    support = support_folder(tmp_path / "support", classes)
    query = support / "class0"
    arguments = ["--support", str(support), "--query", str(query), "--format", "csv"]
    assert main(["adapt", str(runs / run), *arguments]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [key for key in rows[0] if key.startswith("class") and key != "class"] == [
        f"class{number}" for number in range(classes)
    ]
    assert len(load_file("adapted/adapted.safetensors")["classifier.bias"].flatten()) == classes


def test_resuming_and_records_without_the_field(runs: Path, tmp_path: Path) -> None:
    whole = tiny_run(tmp_path / "whole", head="shared")
    cut = tiny_run(tmp_path / "cut", head="shared", updates=2)
    assert main(["train", "--resume", str(cut.folder), "--updates", "4"]) == 0
    same_run(whole.folder, cut.folder)
    record = json.loads((runs / "plain" / "run.json").read_text())
    assert record["config"].pop("head") == "per-class"
    (runs / "plain" / "run.json").write_text(json.dumps(record))
    assert open_run(runs / "plain").config.head == "per-class"
    assert load_trained(runs / "plain").meta.functional.head == "per-class"


def test_bad_heads_are_named(capsys: Captured, tmp_path: Path) -> None:
    assert main(["train", "--head", "common"]) == 2
    assert "--head common is unknown; choose from per-class, shared, zero" in capsys.readouterr().err
    flags = [*TINY_FLAGS, "--head", "shared", "--out", str(tmp_path / "run")]
    assert main(["train", *flags, "--method", "boil"]) == 2
    assert "the method boil never moves the classifier" in capsys.readouterr().err
    assert main(["train", *flags, "--subset", "ebn"]) == 2
    assert "add cls to the subset" in capsys.readouterr().err


def test_parameters_of_the_heads(capsys: Captured) -> None:
    command = ["parameters", "--backbone", "conv4", "--filters", "32"]
    assert main(command) == 0
    out = capsys.readouterr().out
    body, features = 28_896, 800
    for count in (body + 5 * (features + 1), body + features + 1, body):
        assert f"{count:,}" in out
    assert main([*command, "--head", "shared"]) == 0
    assert f"{2 * (body + features + 1):,}" in capsys.readouterr().out  # a rate for each: meta-sgd
