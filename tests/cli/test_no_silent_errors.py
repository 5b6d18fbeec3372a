"""Inputs that once gave a wrong result silently are refused, or give the right one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from firststep import (
    FirststepError,
    condition_number,
    eigenvalues,
    log_eigenvalue_variance,
    numerical_rank,
)
from firststep.cli import main
from firststep.evaluation import EvaluationSettings, load_evaluation
from firststep.training import (
    Run,
    TrainConfig,
    data_for,
    load_checkpoint,
    load_trained,
    open_run,
    train,
)
from runs import TINY_FLAGS, tiny_run

Captured = pytest.CaptureFixture[str]
FEW = ["--episodes", "3", "--steps", "0", "1"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return tiny_run(Path("run"))


def compared() -> float:
    """Return the first accuracy after one step in the comparison's table."""
    assert main(["compare", "run", *FEW, "--out", "comparison"]) == 0
    header, *rows = Path("comparison/comparison.csv").read_text().splitlines()
    row = next(line.split(",") for line in rows if line.split(",")[1] == "1")
    return float(row[header.split(",").index("accuracy")])


def fresh(run: Run) -> float:
    trained = load_trained(run.folder)
    return 100 * float(
        trained.evaluate(data_for(trained), EvaluationSettings(episodes=3, steps=(0, 1))).at(1).mean()
    )


@pytest.mark.slow
def test_compare_tests_anew_after_more_training(run: Run) -> None:
    assert main(["evaluate", "run", *FEW]) == 0
    before = compared()
    assert before == pytest.approx(fresh(run))
    digest = run.load("best", torch.device("cpu")).digest
    train(resume=run.folder, updates=60)
    again = open_run("run")
    assert again.load("best", torch.device("cpu")).digest != digest
    assert compared() == pytest.approx(fresh(again))


@pytest.mark.parametrize(
    "other", [["--which", "last"], ["--seed", "77", "--queries", "1"], ["--rate-multiplier", "3"]]
)
def test_other_evaluations_have_other_files_and_compare_does_not_take_them(
    run: Run, other: list[str]
) -> None:
    assert main(["evaluate", "run", *FEW]) == 0
    (standard,) = Path("run/evaluations").glob("*.json")
    before = standard.read_bytes()
    assert main(["evaluate", "run", *FEW, *other]) == 0
    assert standard.read_bytes() == before
    assert len(list(Path("run/evaluations").glob("*.json"))) == 2
    standard.unlink()
    assert compared() == pytest.approx(fresh(run))


def test_a_stored_evaluation_is_used_where_all_agrees(run: Run) -> None:
    assert main(["evaluate", "run", *FEW]) == 0
    (stored,) = Path("run/evaluations").glob("*.json")
    content = json.loads(stored.read_text())
    content["metrics"]["accuracy"]["values"] = [[0.0, 0.123]] * 3  # which a new test would not find
    stored.write_text(json.dumps(content))
    assert compared() == pytest.approx(12.3)
    content["provenance"]["checkpoint"] = "another"
    stored.write_text(json.dumps(content))
    assert compared() != pytest.approx(12.3)
    assert load_evaluation(stored).provenance["checkpoint"] == run.load("best", torch.device("cpu")).digest


@pytest.mark.slow
def test_two_trainings_at_once_leave_one_run_with_its_own_record(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "firststep", "train", *TINY_FLAGS, "--out", str(out)]
    processes = [
        subprocess.Popen([*command, "--seed", seed], stderr=subprocess.PIPE, text=True) for seed in ("0", "1")
    ]
    errors = [process.communicate(timeout=240)[1] for process in processes]
    codes = [process.returncode for process in processes]
    assert sorted(codes) == [0, 2], errors
    winner = open_run(out)
    assert winner.config.seed == codes.index(0)
    alone = tiny_run(tmp_path / "alone", seed=winner.config.seed)
    assert alone.checkpoint_path("last").read_bytes() == winner.checkpoint_path("last").read_bytes()


def spoil(run: Run, value: float) -> None:
    """Write an infinite or NaN weight into an otherwise valid checkpoint."""
    path = run.checkpoint_path("best")
    saved = load_checkpoint(path, torch.device("cpu"))
    saved.model["network.classifier.weight"][0, 0] = value
    saved.__dict__.pop("digest", None)
    saved.save(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_give_no_result(run: Run, value: float, capsys: Captured) -> None:
    spoil(run, value)
    assert main(["evaluate", "run", *FEW]) == 2
    assert "task 0: outputs for the query set are not finite after 0 steps" in capsys.readouterr().err
    assert not Path("run/evaluations").exists()


def test_steps_that_diverge_give_no_result(run: Run, capsys: Captured) -> None:
    assert main(["evaluate", "run", *FEW, "--rate-multiplier", "1e30"]) == 2
    errors = capsys.readouterr().err
    assert "not finite after 1 step;" in errors
    assert len(errors.splitlines()) == 1


def test_a_lost_checkpoint_is_said_and_starts_over_only_when_asked(run: Run, capsys: Captured) -> None:
    last, metrics = run.checkpoint_path("last").read_bytes(), run.metrics_path.read_bytes()
    run.checkpoint_path("last").unlink()
    assert main(["train", "--resume", "run"]) == 2
    assert "last.safetensors is missing although the run had been trained" in capsys.readouterr().err
    assert run.metrics_path.read_bytes() == metrics
    assert main(["train", "--resume", "run", "--restart"]) == 0
    assert run.checkpoint_path("last").read_bytes() == last
    assert run.metrics_path.read_bytes() == metrics


def test_flipped_bits_and_exchanged_tensors_are_noticed(run: Run) -> None:
    path = run.checkpoint_path("best")
    good = path.read_bytes()
    path.write_bytes(good[:-9] + bytes([good[-9] ^ 1]) + good[-8:])
    with pytest.raises(FirststepError, match=r"best.safetensors is damaged .*digest"):
        load_trained(run.folder)
    path.write_bytes(good)
    tensors = load_file(path)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    first, second = "network.blocks.1.conv.bias", "network.blocks.2.conv.bias"
    tensors[first], tensors[second] = tensors[second] + 1, tensors[first]
    save_file(tensors, path, metadata)
    with pytest.raises(FirststepError, match="digest"):
        load_trained(run.folder)


@pytest.mark.parametrize("flags", [["--shots", "0"], ["--queries", "0"]])
def test_zero_is_not_as_trained(run: Run, flags: list[str], capsys: Captured) -> None:
    assert main(["evaluate", "run", *FEW, *flags]) == 2
    assert "must be at least 1, not 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("steps", 2.5, "run.json: config.steps: expected int, got float"),
        ("queries", True, "run.json: config.queries: expected int, got bool"),
        ("rate", "fast", "run.json: config.rate: expected float | null, got str"),
        ("compile", 1, "run.json: config.compile: expected bool, got int"),
        ("seed", None, "run.json: config.seed: expected int, got null"),
    ],
)
def test_a_record_with_a_wrong_type_is_refused(
    run: Run, field: str, value: object, line: str, capsys: Captured
) -> None:
    record = json.loads(run.record_path.read_text())
    record["config"][field] = value
    run.record_path.write_text(json.dumps(record))
    assert main(["evaluate", "run", *FEW]) == 2
    errors = capsys.readouterr().err
    assert line in errors
    assert "run.json" in errors
    assert TrainConfig(rate=1).rate == 1  # a whole number is a number


def test_names_with_brackets_are_shown_as_they_are(run: Run, capsys: Captured) -> None:
    run.folder.rename("[bold]run")
    assert main(["evaluate", "[bold]run", *FEW]) == 0
    assert "[bold]run" in capsys.readouterr().out


@pytest.mark.parametrize("function", [eigenvalues, condition_number, log_eigenvalue_variance, numerical_rank])
@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        (torch.tensor([[1.0, 0.5], [0.0, 1.0]], dtype=torch.float64), "symmetric"),
        (torch.eye(2, dtype=torch.complex128), "real"),
        (torch.diag(torch.tensor([1.0, -0.1], dtype=torch.float64)), "negative eigenvalue"),
    ],
)
def test_what_is_no_gram_matrix_is_refused(function: object, matrix: torch.Tensor, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        function(matrix)  # type: ignore[operator]
