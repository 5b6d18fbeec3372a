"""The tasks of a meta-batch: one after the other, on a GPU over several streams if asked to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from firststep.task import Task

Result = TypeVar("Result")


def of_each(compute: Callable[[Task], Result], tasks: Sequence[Task], streams: int) -> list[Result]:
    """The results in the tasks' order.

    On a GPU a call only queues the work. A small network does not fill the device, so that tasks queued on
    streams of their own overlap. A CPU has no streams: there a task's operations share its cores, and whole
    tasks are best divided between processes (torchrun).
    """
    device = tasks[0].support_y.device
    if device.type != "cuda" or streams == 1:
        return [compute(task) for task in tasks]
    here = torch.cuda.current_stream(device)
    others = [torch.cuda.Stream(device) for _ in range(min(streams, len(tasks)))]
    results = []
    for number, task in enumerate(tasks):
        stream = others[number % len(others)]
        stream.wait_stream(here)  # the parameters are ready, and nobody reads this stream's old results
        with torch.cuda.stream(stream):
            results.append(compute(task))
    for stream in others:
        here.wait_stream(stream)
    return results
