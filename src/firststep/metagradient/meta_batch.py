"""The tasks of a meta-batch: small ones in parallel on the cores of a CPU, others one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from firststep.losses import first_tensor
from firststep.metagradient.eager import input_form
from firststep.metagradient.missing_derivative import explained
from firststep.metagradient.objective import Start
from firststep.metagradient.result import TaskReport
from firststep.metagradient.stepwise import Stepwise
from firststep.metagradient.unrolled import Unrolled
from firststep.network import (
    Params,
    Replicas,
    Sharing,
    footprint,
    in_order,
    network_dtype,
    networks_in,
    share_threads,
    using_threads,
)

Gradient = tuple[Params, Params, TaskReport]
"""Gradients of a task in the network's and the rule's initial parameters, and the report."""

# Memory budget in bytes for concurrent tasks. A task needs FORWARDS forward passes of its support set and two
# of its query set. An explicit `memory` allows each task more.
TOGETHER = 2**30
FORWARDS = 12


LARGEST_ERROR = 0.25
"""Relative error of the first task's meta-gradient from which bfloat16 is refused."""


class MetaBatch:
    """Compute the tasks of a meta-batch with one engine."""

    def __init__(self, engine: Stepwise | Unrolled, dtype: torch.dtype | None) -> None:
        self._engine = engine
        self._dtype = dtype  # of the network's passes; None for that of the parameters
        self._exact_enough = False
        self._model = engine.objective.model
        self._bytes: dict[Any, int] = {}  # of a forward pass, by form of the inputs

    def __call__(
        self,
        rule_params: Params,
        first: Start,
        starts: Iterable[Start],
        weights: tuple[float, ...],
        several: bool,
    ) -> Iterator[Gradient]:
        """Yield the gradients in the order of ``starts``, the first of which is ``first``."""
        sharing = self._sharing(first) if several else Sharing(1, 1)
        if sharing.workers > 1:
            self._prepare(rule_params, first, sharing)
        engines = Replicas(self._engine, self._model.module, sharing)

        def compute(engine: Stepwise | Unrolled, start: Start) -> Gradient:
            model, param = engine.objective.model, next(iter(start.params.values()))
            with (
                networks_in(self._dtype, param),
                model.one_task(),
                explained(model, start.params, start.task.support_x),
            ):
                for_start, for_rule_params, report = engine(start.params, rule_params, start.task, weights)
                if network_dtype() is not None and not self._exact_enough:
                    with networks_in(None, param):
                        exact = engine(start.params, rule_params, start.task, weights)[0]
                    self._refuse_inexact(for_start, exact)
                labels = engine.objective.losses.support.labels(start.task.support_y)
                gradient = model.initial_gradient(for_start, start.params, start.task.support_x, *labels)
            return gradient, for_rule_params, report

        def one(start: Start) -> Gradient:
            return engines.use(compute, start)

        def prepared() -> Iterator[Start]:
            for start in starts:
                self._prepare(rule_params, start, sharing)
                yield start

        if engines.sharing.workers == 1:
            return map(one, starts)
        return in_order(one, prepared(), sharing)

    def _refuse_inexact(self, found: Params, exact: Params) -> None:
        """Refuse bfloat16 if it changes the first task's gradient too much; this waits for the device."""
        apart = sum((found[name] - exact[name]).square().sum() for name in exact)
        size = sum(value.square().sum() for value in exact.values())
        error = float((apart / size) ** 0.5) if size else 0.0
        if error > LARGEST_ERROR:
            raise ValueError(
                f"bfloat16 changes the meta-gradient of the first task by {error:.0%}, more than "
                f"{LARGEST_ERROR:.0%}: units and pixels near a tie change sides, more with every step. Leave "
                "precision='bf16' or torch.autocast out, or take fewer inner steps"
            )
        self._exact_enough = True

    def _prepare(self, rule_params: Params, start: Start, sharing: Sharing) -> None:
        """Compile the functions that the workers share, in this thread."""
        with (
            using_threads(sharing.threads),
            explained(self._model, start.params, start.task.support_x),
        ):
            self._engine.prepare(start.params, rule_params, start.task)

    def _sharing(self, first: Start) -> Sharing:
        """Return one thread per small task, or all threads for one task if tasks need much memory."""
        alone = Sharing(1, 1)
        task = first.task
        if not isinstance(self._engine, Stepwise) or not self._engine.shares_cores():
            return alone
        if first_tensor(task.support_y).device.type != "cpu" or self._model.randomness != "error":
            return alone
        key = input_form(task.support_x)
        if key not in self._bytes:
            self._bytes[key] = footprint(self._model, first.params, task.support_x).bytes
        queries = 2 * len(first_tensor(task.query_y)) / len(first_tensor(task.support_y))
        return share_threads(int((FORWARDS + queries) * self._bytes[key]), TOGETHER)
