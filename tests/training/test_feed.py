"""Tasks that a thread prepares, or whose images are on the device: the same bits, and no thread is left."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from device_cases import CPU
from firststep.errors import FirststepError
from firststep.training import Interrupted, Run, TrainConfig, TrainingProgress, train
from firststep.training.feed import Drawn

TINY = TrainConfig(
    filters=4, ways=3, shots=1, queries=2, steps=1, rate=0.1, meta_batch=2, updates=4, validate_every=2,
    validation_episodes=2, device="cpu", threads=1, log="none",
)  # fmt: skip
CHANGES: list[dict[str, Any]] = [{"prefetch": 1}, {"prefetch": 20}, {"data_on_device": True}]


def bits(run: Run) -> list[bytes]:
    return [path.read_bytes() for path in (run.checkpoint_path("last"), run.metrics_path)]


def reading_threads() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("firststep-episodes")]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return bits(train(TINY, tmp_path_factory.mktemp("plain") / "run"))


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_every_way_gives_the_same_bits(changes: dict[str, Any], plain: list[bytes], tmp_path: Path) -> None:
    assert bits(train(replace(TINY, **changes), tmp_path / "run")) == plain
    assert not reading_threads()


def test_a_training_that_reads_ahead_stops_and_resumes_to_the_same_bits(
    plain: list[bytes], tmp_path: Path
) -> None:
    def stop(progress: TrainingProgress) -> None:
        if progress.update == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        train(replace(TINY, prefetch=50), tmp_path / "run", on_update=stop)
    assert not reading_threads()
    assert bits(train(resume=tmp_path / "run")) == plain


class Failing:
    """Tasks of which the third cannot be drawn."""

    def __getitem__(self, number: int) -> Any:
        if number == 2:
            raise FirststepError("episode 2 is broken")
        return (torch.zeros(1), torch.zeros(1).long(), torch.zeros(1), torch.zeros(1).long())


def test_an_error_in_the_thread_is_raised_in_its_place() -> None:
    tasks = Drawn(Failing(), CPU, 4).tasks(range(5))
    assert len([next(tasks), next(tasks)]) == 2
    with pytest.raises(FirststepError, match="episode 2 is broken"):
        next(tasks)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"augment": True}, "`data_on_device` holds fixed images; `augment` changes them"),
        ({"prefetch": -1}, "`prefetch` must be at least 0"),
    ],
)
def test_bad_settings(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FirststepError, match=message):
        train(replace(TINY, data_on_device=True, **changes), tmp_path / "run")
