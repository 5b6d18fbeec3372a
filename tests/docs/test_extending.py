"""CONTRIBUTING's `my_parts.py`, written as a user's own file, works in every command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from firststep.cli import main
from firststep.evaluation import METRICS, load_evaluation, metrics_table
from firststep.utils.user_modules import VARIABLE
from helpers.pages import ROOT, snippets
from runs import TINY_FLAGS


@pytest.mark.usefixtures("clean_registries")
def test_a_users_own_parts_are_trained_tested_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.syspath_prepend(tmp_path)
    parts = "\n".join(snippet.code for snippet in snippets(ROOT / "CONTRIBUTING.md"))
    Path("my_parts.py").write_text(parts)
    monkeypatch.setitem(sys.modules, "my_parts", None)  # so that it is put back to absent after the test
    del sys.modules["my_parts"]
    own = [
        *("--method", "clipped-maml", "--backbone", "perceptron"),
        *("--conditioning", "spread", "--subset", "cls"),
    ]
    flags = [*TINY_FLAGS, *own]
    del flags[flags.index("--filters") : flags.index("--filters") + 2]  # a perceptron has none
    assert main(["--import", "my_parts", "train", *flags, "--out", "run"]) == 0, capsys.readouterr().err
    config = json.loads(Path("run/run.json").read_text())["config"]
    assert (config["method"], config["backbone"], config["conditioning"]) == (
        "clipped-maml",
        "perceptron",
        "spread",
    )

    # The metric is in the logs, without a line of code about it elsewhere.
    logged = json.loads(Path("run/metrics.jsonl").read_text().splitlines()[-1])
    assert len(logged["validation_confidence"]) == len(logged["train_confidence"]) == 3
    assert all(loss > 0 for loss in logged["validation_confidence"])
    board = EventAccumulator("run/tensorboard").Reload()
    assert "validation_confidence/2" in board.Tags()["scalars"]

    # In a test's table and files, and in a comparison.
    capsys.readouterr()
    assert main(["evaluate", "run", "--episodes", "3", "--steps", "0", "2"]) == 0
    assert "confidence" in capsys.readouterr().out
    (stored,) = Path("run/evaluations").glob("*.json")
    header = stored.with_suffix(".csv").read_text().splitlines()[0]
    assert header.startswith("step,accuracy,ci95,condition_number,rank,")
    assert header.endswith(",confidence,confidence_ci95")
    assert main(["compare", "run", "--episodes", "3", "--steps", "0", "2", "--out", "comparison"]) == 0
    assert "confidence" in Path("comparison/comparison.csv").read_text()

    # Somebody without the module still reads the stored numbers as they were.
    before = load_evaluation(stored)
    METRICS.unregister("confidence")
    after = load_evaluation(stored)
    assert after.rows() == before.rows()
    assert "support loss" in metrics_table(after).columns
