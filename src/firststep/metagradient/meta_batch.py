"""The tasks of a meta-batch: small ones in parallel on the cores of a CPU, others one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from firststep.losses import first_tensor
from firststep.metagradient.eager import input_form
from firststep.metagradient.missing_derivative import explained
from firststep.metagradient.result import TaskReport
from firststep.metagradient.stepwise import Stepwise
from firststep.metagradient.unrolled import Unrolled
from firststep.network import Params, Replicas, Sharing, footprint, in_order, share_threads, using_threads
from firststep.task import Task

Gradient = tuple[Params, Params, TaskReport]
"""Gradient of a task in the network's initial parameters, in the rule's parameters, and the report."""

# Bytes that concurrent tasks may take together. A task takes those of FORWARDS forward passes of its support
# set and two of its query set. An explicit `memory` allows each task more.
TOGETHER = 2**30
FORWARDS = 12


class MetaBatch:
    """Compute the tasks of a meta-batch with one engine."""

    def __init__(self, engine: Stepwise | Unrolled) -> None:
        self._engine = engine
        self._model = engine.model
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
        """Yield the gradients in the order of ``tasks``, whose first is ``first``."""
        sharing = self._sharing(params, first) if several else Sharing(1, 1)
        if sharing.workers > 1:
            self._prepare(params, rule_params, first, sharing)
        engines = Replicas(self._engine, self._model.module, sharing)

        def compute(engine: Stepwise | Unrolled, task: Task) -> Gradient:
            start = self._start(params, task)
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
            return map(one, tasks)
        return in_order(one, prepared(), sharing)

    def _start(self, params: Params, task: Task) -> Params:
        """Return θ(0) of a task."""
        labels = self._engine.losses.labels(task.support_y, task.query_y)
        return self._model.initial_params(params, *labels)

    def _prepare(self, params: Params, rule_params: Params, task: Task, sharing: Sharing) -> None:
        """Compile the functions that the workers share, in this thread."""
        start = self._start(params, task)
        with using_threads(sharing.threads), explained(self._model, start, task.support_x):
            self._engine.prepare(start, rule_params, task)

    def _sharing(self, params: Params, task: Task) -> Sharing:
        """Return the threads for small tasks at once, or one thread group for tasks that need much memory."""
        alone = Sharing(1, 1)
        if not isinstance(self._engine, Stepwise) or not self._engine.shares_cores():
            return alone
        if first_tensor(task.support_y).device.type != "cpu" or self._model.randomness != "error":
            return alone
        key = input_form(task.support_x)
        if key not in self._bytes:
            start = self._start(params, task)
            self._bytes[key] = footprint(self._model, start, task.support_x).bytes
        queries = 2 * len(first_tensor(task.query_y)) / len(first_tensor(task.support_y))
        return share_threads(int((FORWARDS + queries) * self._bytes[key]), TOGETHER)
