"""The examples with a DataLoader, Lightning, Accelerate and Optuna: one training, the same result in each."""

from __future__ import annotations

import warnings
from itertools import chain

import pytest
import torch

import task_loader
import with_accelerate
import with_optuna
from third_party import import_lightning

pytestmark = pytest.mark.slow
UPDATES = 12


@pytest.fixture(scope="module")
def expected() -> torch.Tensor:
    """Return the accuracies after every step of the plain loop."""
    found = task_loader.main(UPDATES, workers=0)
    assert found[1] > 0.25  # chance is 0.2
    return found


def test_worker_processes_give_the_same_tasks_in_the_same_order() -> None:
    here, there = (list(task_loader.task_loader("train", 6, batch=2, workers=n)) for n in (0, 2))
    assert [len(batch) for batch in there] == [2, 2, 2]
    for one, other in zip(chain(*here), chain(*there), strict=True):
        for first, second in zip(one, other, strict=True):
            assert torch.equal(first, second)


def test_accelerate_trains_the_same_model(expected: torch.Tensor) -> None:
    assert with_accelerate.main(UPDATES).tolist() == pytest.approx(expected.tolist(), abs=0.02)


def test_lightning_trains_the_same_model_and_logs_every_step(expected: torch.Tensor) -> None:
    import_lightning()
    import with_lightning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Lightning's own code
        found = with_lightning.main(UPDATES)
    steps = [found[f"accuracy/{step}"] for step in range(len(expected))]
    assert steps == pytest.approx(expected.tolist(), abs=0.02)
    assert 0 < found["log10_condition_number"] < 10


def test_optuna_searches_and_prunes() -> None:
    study = with_optuna.main(trials=5)
    assert len(study.trials) == 5
    assert study.best_value == max(t.value for t in study.trials if t.value is not None)
    assert set(study.best_params) == {"rate", "gamma"}
    assert any(trial.state.name == "PRUNED" for trial in study.trials)
