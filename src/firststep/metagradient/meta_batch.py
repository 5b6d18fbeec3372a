"""The tasks of a meta-batch one after the other; on a GPU over several streams if asked to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import torch

from firststep.task import Task

Result = TypeVar("Result")


def over_streams(compute: Callable[[Task], Result], tasks: Iterable[Task], streams: int) -> Iterator[Result]:
    """The results in the tasks' order.

    On a GPU a call only queues the work. A small network does not fill the device, so that tasks queued on
    streams of their own overlap. A CPU has no streams: see :mod:`firststep.network.task_threads`.
    """
    remaining = iter(tasks)
    while batch := list(islice(remaining, streams)):
        yield from _together(compute, batch)


def _together(compute: Callable[[Task], Result], tasks: list[Task]) -> list[Result]:
    device = tasks[0].support_y.device
    if device.type != "cuda" or len(tasks) == 1:
        return [compute(task) for task in tasks]
    here = torch.cuda.current_stream(device)
    others = [torch.cuda.Stream(device) for _ in tasks]
    results = []
    for stream, task in zip(others, tasks, strict=True):
        stream.wait_stream(here)  # the parameters are ready, and nobody reads this stream's old results
        with torch.cuda.stream(stream):
            results.append(compute(task))
    for stream in others:
        here.wait_stream(stream)
    return results
