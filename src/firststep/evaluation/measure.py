"""Measure all metrics after each inner step, in memory that does not grow with the number of steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from firststep.adaptation import Aux, steps_from
from firststep.backbones import first_derivatives_only
from firststep.conditioning import float64_device, in_float64
from firststep.data import Episode
from firststep.distributed import Team
from firststep.errors import FirststepError
from firststep.evaluation.metrics import MAIN, AdaptationState, Metric, metrics_of
from firststep.losses import first_tensor
from firststep.meta_learner import MetaLearner
from firststep.network import (
    Footprint,
    Output,
    Params,
    Replicas,
    Sharing,
    footprint,
    in_order,
    share_threads,
)
from firststep.task import Task
from firststep.utils import counted

Also = TypeVar("Also")
Result = TypeVar("Result")
MEMORY = 2**31
"""Memory budget in bytes for tasks that are measured in parallel."""


class NotFinite(FirststepError):
    """A result is NaN or infinite: the weights are damaged or adaptation diverged."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Metrics of several tasks after several numbers of steps.

    Examples:
        >>> measurement = evaluation.measurement
        >>> measurement.steps, measurement.values["accuracy"].shape
        ((0, 1, 2), (3, 3))
    """

    steps: tuple[int, ...]
    """Numbers of inner steps, ascending."""
    values: dict[str, np.ndarray]
    """Metric name → [tasks, steps]."""
    metrics: dict[str, Metric]
    """The metrics themselves, which say how values are shown."""

    @property
    def accuracy(self) -> np.ndarray:
        """Accuracy [tasks, steps]."""
        return self.values["accuracy"]

    @property
    def main(self) -> str:
        """Name of the metric that chooses models: accuracy, or that of the kind of problem."""
        return next((name for name in MAIN.values() if name in self.values), next(iter(self.values)))

    def mean(self, metric: str | None = None) -> np.ndarray:
        """Return the mean over tasks [steps], by default of :attr:`main`; geometric for ``log10`` metrics."""
        name = metric or self.main
        return self.metrics[name].mean(self.values[name])

    def half_width(self, metric: str | None = None) -> np.ndarray:
        """Return the 95 % confidence half-width of the arithmetic mean over tasks [steps]."""
        return half_width(self.values[metric or self.main])

    def gather(self, team: Team, total: int) -> Measurement:
        """Join the shares of all ranks into the measurement of tasks 0..total-1, in order."""
        rows = team.gather(np.concatenate(list(self.values.values()), 1), total)
        parts = np.split(rows, len(self.values), 1)
        return Measurement(
            steps=self.steps, values=dict(zip(self.values, parts, strict=True)), metrics=self.metrics
        )


def half_width(samples: np.ndarray) -> np.ndarray:
    """Return 1.96 · std / sqrt(n) over the first axis, with n - 1 in std.

    Examples:
        >>> from firststep.evaluation import half_width
        >>> round(float(half_width(np.array([0.8, 0.9, 1.0, 0.9]))), 3)
        0.08
    """
    return 1.96 * samples.std(0, ddof=1) / np.sqrt(len(samples))


def to_task(episode: Episode, device: torch.device) -> Task:
    """Convert the arrays of an episode to tensors on a device.

    Examples:
        >>> from firststep.evaluation import to_task
        >>> to_task(episodes[0], torch.device("cpu")).support_x.shape
        torch.Size([10, 1, 16, 16])
    """
    return Task(*(map_arrays(torch.from_numpy, part) for part in episode)).to(device)


def map_arrays(function: Callable[[np.ndarray], Tensor], part: Any) -> Any:
    """Return a part of an episode, an array or a tuple or dict of them, as tensors."""
    if isinstance(part, tuple):
        return tuple(map_arrays(function, each) for each in part)
    if isinstance(part, Mapping):
        return {name: map_arrays(function, each) for name, each in part.items()}
    return function(part) if isinstance(part, np.ndarray) else part


def measure_task(
    meta: MetaLearner,
    task: Task,
    *,
    steps: Sequence[int],
    subset: str = "cls",
    metrics: Iterable[str] | None = None,
    check_finite: bool = True,
) -> dict[str, list[float]]:
    """Return {metric: values} after each of the ascending numbers of inner steps on one task.

    Only the current parameters are kept, so a hundred steps need no more memory than one.

    Args:
        meta: learner to measure.
        task: task to adapt to and to test on.
        steps: numbers of inner steps.
        subset: parameters of the Gram matrix that the metrics use.
        metrics: names in :data:`METRICS`; default: all of the learner's kind of problem.
        check_finite: whether to raise :class:`NotFinite` for NaN or infinite outputs and metrics.

    Examples:
        >>> from firststep.evaluation import measure_task
        >>> len(measure_task(trained.meta, glyph_task, steps=[0, 1, 5])["accuracy"])
        3
    """
    if any(later <= earlier for earlier, later in pairwise(steps)):
        raise FirststepError(f"`steps` must be strictly ascending, got {list(steps)}")

    chosen = metrics_of(meta.kind, metrics)

    def compute(learner: MetaLearner, task: Task) -> Tensor:
        return _measure(learner, task, steps, subset, chosen)

    rows = _read(next(_of_each(compute, meta, [task], alone=True)), steps, chosen, check_finite)
    return {name: row.tolist() for name, row in zip(chosen, rows, strict=True)}


def _measure(
    meta: MetaLearner,
    task: Task,
    steps: Sequence[int],
    subset: str,
    metrics: Mapping[str, Metric],
) -> Tensor:
    """Return [metrics, steps] on the device, after a row that says whether the outputs are finite."""
    found: list[Tensor] = []
    start = meta.start_task(task.support_x, task.support_y)
    current, updates = start.params, steps_from(start, task.support_x, task.support_y)
    taken = 0
    for step in steps:
        output = None
        while taken < step:
            current, _ = _next(updates)
            taken += 1
        if step != steps[-1]:
            # The next step runs the network at the same parameters: reuse its output for the metrics.
            following, aux = _next(updates)
            output = Output(aux.features, aux.logits)
        with torch.no_grad():
            state = AdaptationState(
                meta.functional,
                current,
                task,
                step,
                subset,
                output,
                meta.loss,
                meta.query_loss,
                meta.conditioning.chosen_residuals if meta.conditioning else None,
            )
            values = [_is_finite(state.query.logits), *(each.compute(state) for each in metrics.values())]
            device = float64_device(meta.device)
            found.append(torch.stack([in_float64(value).to(device).reshape(()) for value in values]))
        if step != steps[-1]:
            current, taken = following, taken + 1
    return torch.stack(found, 1)


def _is_finite(output: Any) -> Tensor:
    parts = output.values() if isinstance(output, Mapping) else output
    tensors = parts if isinstance(parts, tuple | list) or isinstance(output, Mapping) else [output]
    return torch.stack([torch.isfinite(part).all() for part in tensors]).all()


def _read(table: Tensor, steps: Sequence[int], metrics: Iterable[str], check_finite: bool) -> np.ndarray:
    """Return [metrics, steps] of what :func:`_measure` gave; this waits for the device."""
    finite, *rows = table.cpu().numpy()
    for column, step in enumerate(steps if check_finite else ()):
        if not finite[column]:
            raise NotFinite(f"outputs for the query set are not finite after {counted(step, 'step')}")
        for name, row in zip(metrics, rows, strict=True):
            if not math.isfinite(row[column]):
                raise NotFinite(f"metric {name} is {row[column]} after {counted(step, 'step')}")
    return np.stack(rows)


def _next(updates: Iterator[tuple[Params, Aux]]) -> tuple[Params, Aux]:
    with first_derivatives_only():
        return next(updates)


def _arranged(task: Task, form: Footprint) -> Task:
    """Return the task in the memory layout that is fastest for the network; unchanged on a GPU."""
    if first_tensor(task.support_y).device.type != "cpu":
        return task
    return task._replace(support_x=form.arranged(task.support_x), query_x=form.arranged(task.query_x))


def measure_tasks(
    meta: MetaLearner,
    tasks: Iterable[Task],
    *,
    steps: Sequence[int],
    subset: str = "cls",
    metrics: Iterable[str] | None = None,
    check_finite: bool = True,
    progress: Callable[[], None] | None = None,
) -> Measurement:
    """Run :func:`measure_task` on many tasks; ``progress`` is called after each.

    Examples:
        >>> from firststep.evaluation import measure_tasks
        >>> measured = measure_tasks(trained.meta, [glyph_task], steps=[0, 1], metrics=["accuracy"])
        >>> measured.values["accuracy"].shape
        (1, 2)
    """
    return measure_tasks_and(
        lambda *_: None,
        meta,
        tasks,
        steps=steps,
        subset=subset,
        metrics=metrics,
        check_finite=check_finite,
        progress=progress,
    )[0]


def measure_tasks_and(
    also: Callable[[MetaLearner, Task], Also],
    meta: MetaLearner,
    tasks: Iterable[Task],
    *,
    steps: Sequence[int],
    subset: str = "cls",
    metrics: Iterable[str] | None = None,
    check_finite: bool = True,
    progress: Callable[[], None] | None = None,
) -> tuple[Measurement, list[Also]]:
    """Run :func:`measure_tasks`, and return the results of ``also(learner, task)`` for each task too."""
    chosen = metrics_of(meta.kind, metrics)
    ordered = tuple(sorted(set(steps)))

    def compute(learner: MetaLearner, task: Task) -> tuple[Tensor, Also]:
        table = _measure(learner, task, ordered, subset, chosen)
        if table.device.type == "cpu":  # an accelerator is not made to wait for each task
            _read(table, ordered, chosen, check_finite)
        return table, also(learner, task)

    tables: list[Tensor] = []
    others: list[Also] = []
    # Gram matrices of other subsets need much memory: measure one task at a time.
    results = _of_each(compute, meta, tasks, alone=subset != "cls")
    for number in count():
        try:
            table, other = next(results)
        except StopIteration:
            break
        except NotFinite as error:
            raise _of_task(number, error) from None
        tables.append(table)
        others.append(other)
        if progress is not None:
            progress()
    shape = (0, 1 + len(chosen), len(ordered))  # a rank may have no tasks
    read = torch.stack(tables).cpu() if tables else torch.empty(shape, dtype=torch.float64)
    values = np.empty((len(chosen), len(read), len(ordered)))
    for number, table in enumerate(read):
        try:
            values[:, number] = _read(table, ordered, chosen, check_finite)
        except NotFinite as error:
            raise _of_task(number, error) from None
    measurement = Measurement(
        steps=ordered, values=dict(zip(chosen, values, strict=True)), metrics=dict(chosen)
    )
    return measurement, others


def _of_task(number: int, error: NotFinite) -> NotFinite:
    return NotFinite(f"task {number}: {error}; check the weights, or use shorter inner steps")


def _of_each(
    compute: Callable[[MetaLearner, Task], Result],
    meta: MetaLearner,
    tasks: Iterable[Task],
    *,
    alone: bool,
) -> Iterator[Result]:
    """Yield ``compute(learner, task)`` for each task, in order; in parallel on a CPU unless ``alone``."""
    remaining = iter(tasks)
    first = next(remaining, None)
    if first is None:
        return
    start = meta.start_task(first.support_x, first.support_y)
    form = footprint(meta.functional, start.params, first.support_x)
    sharing = Sharing(1, 1)  # a network that draws random numbers needs one task at a time, in order
    if not alone and meta.device.type == "cpu" and meta.functional.randomness == "error":
        larger = len(first_tensor(first.query_y)) / len(first_tensor(first.support_y))
        sharing = share_threads(int(form.bytes * (1 + larger)), MEMORY)
    learners = Replicas(meta, meta, sharing)

    def one(task: Task) -> Result:
        return learners.use(compute, task)

    yield from in_order(one, (_arranged(task, form) for task in chain((first,), remaining)), learners.sharing)
