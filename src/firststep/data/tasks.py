"""The tasks of a split: episodes of a dataset's classes, or those that a task source draws."""

from __future__ import annotations

from typing import Protocol

from firststep.data.augmentation import Augmentation
from firststep.data.dataset import Dataset
from firststep.data.episodes import Episode, Episodes
from firststep.data.task_source import TaskSource


class Tasks(Protocol):
    """An endless sequence of tasks by number."""

    def __getitem__(self, index: int) -> Episode: ...


def tasks_of(
    data: Dataset,
    split: str,
    *,
    ways: int,
    shots: int,
    queries: int,
    seed: int,
    augment: Augmentation | bool = False,
) -> Tasks:
    """Return the tasks of a split; a task source has no classes, hence no ``ways``."""
    if isinstance(data, TaskSource):
        return data.tasks(split, shots=shots, queries=queries, seed=seed)
    return Episodes(data.split(split), ways=ways, shots=shots, queries=queries, seed=seed, augment=augment)
