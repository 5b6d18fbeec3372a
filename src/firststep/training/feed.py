"""The tasks of a training on its device: prepared ahead by a thread, or of images that are held there."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Protocol

import numpy as np
import torch

from firststep.data import Episodes, Tasks
from firststep.errors import FirststepError
from firststep.evaluation import to_task
from firststep.task import Task, map_inputs

CPU = torch.device("cpu")
CHUNK = 1024
"""Images that are normalised at a time while they move to the device."""


class Feed(Protocol):
    """Tasks by number, on the device of a training."""

    def tasks(self, numbers: Iterable[int]) -> Generator[Task, None, None]:
        """Yield the tasks of these numbers. Close the iterator, which may own a thread."""
        ...


class Drawn:
    """Tasks that are drawn when they are needed, or up to ``ahead`` of them earlier, by a thread.

    A task depends on its number alone, so the thread changes no result. For cuda it also moves the arrays to
    pinned memory, from which the copy to the device does not wait.
    """

    def __init__(self, source: Tasks, device: torch.device, ahead: int) -> None:
        self._source, self._device, self._ahead = source, device, ahead

    def tasks(self, numbers: Iterable[int]) -> Generator[Task, None, None]:
        if not self._ahead:
            for number in numbers:
                yield self._draw(number).to(self._device)
            return
        upcoming = iter(numbers)
        pool = ThreadPoolExecutor(1, "firststep-episodes")
        try:
            waiting: deque[Future[Task]] = deque(
                pool.submit(self._draw, number) for number in islice(upcoming, self._ahead)
            )
            while waiting:
                task = waiting.popleft().result()
                waiting.extend(pool.submit(self._draw, number) for number in islice(upcoming, 1))
                yield task.to(self._device)
        finally:
            pool.shutdown(cancel_futures=True)

    def _draw(self, number: int) -> Task:
        task = to_task(self._source[number], CPU)
        if self._device.type != "cuda":
            return task
        return Task(*(map_inputs(torch.Tensor.pin_memory, part) for part in task))


class Held:
    """Episodes of images that are all on the device: an episode only sends the numbers of its images."""

    def __init__(self, episodes: Tasks, device: torch.device) -> None:
        if not isinstance(episodes, Episodes) or episodes.augment is not None:
            what = (
                "`augment` changes" if isinstance(episodes, Episodes) else "`tasks` has no images but draws"
            )
            raise FirststepError(f"`data_on_device` holds fixed images; {what} them in every episode")
        self._episodes, self._device = episodes, device
        self._inputs = _on_device(episodes, device)
        shots, queries = (
            torch.arange(episodes.ways).repeat_interleave(n) for n in (episodes.shots, episodes.queries)
        )
        labels = Task(shots, shots, queries, queries).to(device)
        self._support_y, self._query_y = labels.support_y, labels.query_y

    def tasks(self, numbers: Iterable[int]) -> Generator[Task, None, None]:
        for number in numbers:
            rows = self._episodes.rows(number)
            support, query = (
                self._inputs[torch.from_numpy(part.ravel()).to(self._device)]
                for part in (rows.support, rows.query)
            )
            yield Task(support, self._support_y, query, self._query_y)


def _on_device(episodes: Episodes, device: torch.device) -> torch.Tensor:
    split = episodes.split
    total = sum(split.counts)
    first = split.inputs(np.arange(1))
    try:
        held = torch.empty(total, *first.shape[1:], device=device)
        for start in range(0, total, CHUNK):
            rows = np.arange(start, min(start + CHUNK, total))
            held[start : start + CHUNK] = torch.from_numpy(split.inputs(rows)).to(device)
    except torch.OutOfMemoryError:
        size = total * first.nbytes / 2**20
        raise FirststepError(
            f"`data_on_device`: the {total} images of {split.dataset} {split.name} take {size:.0f} MiB, too "
            f"much for {device}: leave it out"
        ) from None
    return held
