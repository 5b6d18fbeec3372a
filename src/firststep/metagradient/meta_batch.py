"""The tasks of a meta-batch: side by side on a CPU where they are small, on a GPU over streams or in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import torch

from firststep.metagradient.eager import input_form
from firststep.metagradient.missing_derivative import explained
from firststep.metagradient.result import TaskReport
from firststep.metagradient.stepwise import Stepwise
from firststep.metagradient.unrolled import Unrolled
from firststep.network import Params, Replicas, Sharing, footprint, in_order, share_threads, using_threads
from firststep.task import Task

Result = TypeVar("Result")
Gradient = tuple[Params, Params, TaskReport]
"""Of a task: by the network's initial parameters, by the rule's, and the report."""

# Tasks side by side take about this memory together, each that of so many passes of its support set and two
# of its query set; an explicit `memory` allows each of them more.
TOGETHER = 2**30
FORWARDS = 12


class MetaBatch:
    """Computes each task of a meta-batch by an engine."""

    def __init__(self, engine: Stepwise | Unrolled, streams: int) -> None:
        self._engine = engine
        self._model = engine.model
        self._streams = streams
        self._bytes: dict[Any, int] = {}  # of a forward pass

    def __call__(
        self,
        params: Params,
        rule_params: Params,
        first: Task,
        tasks: Iterable[Task],
        weights: tuple[float, ...],
        several: bool,
    ) -> Iterator[Gradient]:
        """The gradients in the tasks' order, of which ``first`` is the first."""
        sharing = self._sharing(params, first) if several else Sharing(1, 1)
        if sharing.workers > 1:
            self._prepare(params, rule_params, first, sharing)
        engines = Replicas(self._engine, self._model.module, sharing)

        def compute(engine: Stepwise | Unrolled, task: Task) -> Gradient:
            start = self._model.initial_params(params, task.support_y, task.query_y)
            with engine.model.one_task(), explained(engine.model, start, task.support_x):
                for_start, for_rule_params, report = engine(start, rule_params, task, weights)
            return self._model.initial_gradient(for_start), for_rule_params, report

        def one(task: Task) -> Gradient:
            return engines.use(compute, task)

        def prepared() -> Iterator[Task]:
            for task in tasks:
                self._prepare(params, rule_params, task, sharing)
                yield task

        if engines.sharing.workers == 1:
            return over_streams(one, tasks, self._streams)
        return in_order(one, prepared(), sharing)

    def _prepare(self, params: Params, rule_params: Params, task: Task, sharing: Sharing) -> None:
        """Compile in this thread what the workers share."""
        start = self._model.initial_params(params, task.support_y, task.query_y)
        with using_threads(sharing.threads), explained(self._model, start, task.support_x):
            self._engine.prepare(start, rule_params, task)

    def _sharing(self, params: Params, task: Task) -> Sharing:
        """Small tasks side by side, each on a thread of its own; those that need much memory one by one."""
        alone = Sharing(1, 1)
        if not isinstance(self._engine, Stepwise) or not self._engine.shares_cores():
            return alone
        if task.support_y.device.type != "cpu" or self._model.randomness != "error":
            return alone
        key = input_form(task.support_x)
        if key not in self._bytes:
            start = self._model.initial_params(params, task.support_y, task.query_y)
            self._bytes[key] = footprint(self._model, start, task.support_x).bytes
        queries = 2 * len(task.query_y) / len(task.support_y)
        return share_threads(int((FORWARDS + queries) * self._bytes[key]), TOGETHER)


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
