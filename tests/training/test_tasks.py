"""Training on a task source: the same files, tables and resumption as with images, with its own metric."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from firststep import FirststepError
from firststep.evaluation import (
    EvaluationSettings,
    comparison_table,
    html_report,
    load_evaluation,
    metrics_of,
    metrics_table,
    paired_differences,
    steps_table,
)
from firststep.training import Run, TrainConfig, data_for, load_trained, recipe, train

TINY = replace(
    recipe("sinusoid"),
    updates=4,
    validate_every=2,
    validation_episodes=3,
    meta_batch=2,
    steps=2,
    filters=8,
    threads=1,
    device="cpu",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(TINY, tmp_path_factory.mktemp("sinusoid") / "run")


def test_the_best_model_has_the_lowest_error(run: Run) -> None:
    best = run.best_validation()
    assert best is not None
    errors = {entry["update"]: entry["validation_mean_squared_error"][2] for entry in run.metrics()}
    assert best[1] == min(errors.values())
    assert best[0] == min(errors, key=errors.__getitem__)
    assert load_trained(run.folder).update == best[0]


def test_a_resumed_run_ends_the_same(run: Run, tmp_path: Path) -> None:
    train(replace(TINY, updates=2), tmp_path / "run")
    resumed = train(resume=tmp_path / "run", updates=4)
    for which in ("best", "last"):
        assert resumed.checkpoint_path(which).read_bytes() == run.checkpoint_path(which).read_bytes()


def test_evaluation_tables_and_files(run: Run, tmp_path: Path) -> None:
    trained = load_trained(run.folder)
    data = data_for(trained)
    first = trained.evaluate(data, EvaluationSettings(steps=(0, 1, 3), episodes=4, auto=True))
    assert first.main == "mean_squared_error"
    assert first.settings.ways == 1
    path, _ = first.save(tmp_path / "test")
    again = load_evaluation(path)
    assert again.kind == "regression"
    assert again.rows() == first.rows()
    assert again.rows()[-1]["step"] == "auto"
    assert metrics_table(first).columns[:2] == ["steps", "mean squared error"]
    second = trained.evaluate(data, EvaluationSettings(steps=(0, 1, 3), episodes=4, rate_multiplier=2.0))
    at_one = next(d for d in paired_differences(first, second) if d.step == 1)
    assert at_one.difference == pytest.approx((second.at(1) - first.at(1)).mean())
    assert "10-shot" in steps_table([first, second]).title
    assert comparison_table([first, second]).columns[0] == "model"
    page = html_report([first, second], [run.metrics(), run.metrics()], "errors")
    assert "Mean squared error with 95 % half-width; lower is better." in page


def test_the_error_is_that_of_the_adapted_network(run: Run) -> None:
    trained = load_trained(run.folder)
    data = data_for(trained)
    tested = trained.evaluate(data, EvaluationSettings(steps=(2,), episodes=2, seed=7))
    tasks = data.tasks("test", shots=10, queries=10, seed=7)  # type: ignore[attr-defined]
    for number in range(2):
        x, y, xq, yq = map(torch.from_numpy, tasks[number])
        predicted = trained.meta.adapt(x, y, steps=2)(xq)
        assert tested.at(2)[number] == pytest.approx((predicted - yq).square().mean().item(), rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ways": 3}, "`ways` goes with images of classes, not with `tasks=sinusoid`"),
        ({"backbone": "conv4"}, "`tasks=sinusoid` needs `backbone=mlp`"),
        ({"loss": "mse"}, "`loss` mse is unknown"),
        ({"residuals": "rows"}, "`residuals` rows is unknown; choose from samples, outputs"),
        ({"rows": 1}, "`rows` must be at least 2"),
    ],
)
def test_settings_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FirststepError, match=message):
        replace(TINY, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "cross_entropy"}, "must be a tensor of integers"),
        ({"head": "shared"}, "head='shared' needs targets that are classes"),
        ({"method": "gap"}, "gap needs a convolution"),
        ({"moves": "nothing.*"}, "no parameter matches 'nothing"),
    ],
)
def test_what_cannot_be_trained(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises((FirststepError, ValueError), match=message):
        train(replace(TINY, **changes), tmp_path / "run")


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "adam", "rate": 0.001},
        {"conditioning": "variance", "subset": "all", "gamma": 0.01, "rows": 5},
        {"conditioning": "variance", "residuals": "samples"},
        {"loss": "huber", "moves": "classifier.*"},
        {"ema": 0.5, "method": "momentum"},
    ],
    ids=str,
)
def test_variants_train(changes: dict[str, Any], tmp_path: Path) -> None:
    run = train(replace(TINY, **changes), tmp_path / "run")
    entry = run.metrics()[-1]
    assert all(np.isfinite(entry["validation_mean_squared_error"]))
    assert len(entry["validation_condition_number"]) == TINY.steps


def test_moves_are_as_named() -> None:
    assert TINY.inner_moves is None
    assert replace(TINY, moves="cls+emb").inner_moves == "cls+emb"
    assert replace(TINY, moves="classifier.*, *.bias").inner_moves == ("classifier.*", "*.bias")


def test_metrics_that_are_not_defined_are_refused() -> None:
    with pytest.raises(FirststepError, match="accuracy is not defined for regression but for classes; there"):
        metrics_of("regression", ["accuracy"])
    with pytest.raises(FirststepError, match="psnr is not defined for classes"):
        metrics_of("classes", ["psnr"])


def test_the_name_of_a_run_of_images_did_not_change() -> None:
    assert "tasks" not in TrainConfig().identity()
    assert "loss" not in TrainConfig().identity()
