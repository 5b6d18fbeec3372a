"""How often a training waits for its device: once per logged interval, not per step, task or update."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from device_cases import conv, images_task, meta_gradient
from firststep import Conditioning
from firststep.training import TrainConfig, TrainingProgress, train
from firststep.training.checkpoint import Checkpoint
from firststep.training.state import TrainingState
from second_device import SECOND, synchronisations

SHORT = TrainConfig(
    filters=4, ways=3, shots=1, queries=2, steps=1, rate=0.1, meta_batch=2, updates=4, validate_every=4,
    validation_episodes=2, threads=1, log="none",
)  # fmt: skip


@pytest.mark.parametrize("head", ["per-class", "shared", "zero"])
def test_a_meta_gradient_never_waits(head: str) -> None:
    """The helper fails at the first synchronisation: the labels' bounds come along from the CPU."""
    meta_gradient(conv(), images_task(16), SECOND, head=head, conditioning=Conditioning())


def test_labels_made_on_the_device_are_read_once() -> None:
    task = images_task(16).to(SECOND)
    task = task._replace(support_y=task.support_y.clone(), query_y=task.query_y.clone())
    with pytest.raises(AssertionError, match="tolist"):
        meta_gradient(conv(), task, SECOND, head="shared")
    meta_gradient(conv(), task, SECOND, head="shared")  # remembered


def test_labels_that_were_written_to_are_read_again() -> None:
    task = images_task(16).to(SECOND)
    task.support_y.add_(-1)
    with pytest.raises(ValueError, match="must not be negative"):
        meta_gradient(conv(), task, SECOND, around=synchronisations, head="shared")  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{}, {"data_on_device": True}], ids=str)
def test_a_training_waits_once_per_interval(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_update: list[int] = []
    at_checkpoint: list[int] = []
    checkpoint = TrainingState.checkpoint

    def counted(state: TrainingState, *, optimizer: bool) -> Checkpoint:
        at_checkpoint.append(len(seen))
        return checkpoint(state, optimizer=optimizer)

    def count(_: TrainingProgress) -> None:
        by_update.append(len(seen))

    monkeypatch.setattr(TrainingState, "checkpoint", counted)
    with synchronisations() as seen:
        train(replace(SHORT, device="standin", **changes), tmp_path / "run", on_update=count)
    first, second, third, _ = by_update
    assert second == third == first  # the first losses are shown at once, then those of the whole interval
    assert at_checkpoint[0] - third == 3  # the losses, and two measurements: of training and of validation
