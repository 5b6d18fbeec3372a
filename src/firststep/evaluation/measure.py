"""Accuracy after each inner step and condition number before each, task by task, in flat memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from firststep.adaptation import support_gram, walk
from firststep.conditioning import log_condition_number
from firststep.distributed import Team
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule
from firststep.task import Task


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What was measured on a number of tasks at a number of steps."""

    steps: tuple[int, ...]
    accuracy: np.ndarray
    """[tasks, steps], in 0..1"""
    log_condition: np.ndarray
    """[tasks, steps]: log10 of the condition number of the support set's Gram matrix at those parameters"""

    def of_all(self, team: Team, total: int) -> Measurement:
        """Put together what each rank measured on its share of tasks 0..total-1, in their order."""
        rows = team.gather(np.concatenate([self.accuracy, self.log_condition], 1), total)
        accuracy, log_condition = np.split(rows, 2, 1)
        return Measurement(steps=self.steps, accuracy=accuracy, log_condition=log_condition)

    def mean(self) -> np.ndarray:
        return self.accuracy.mean(0)

    def half_width(self) -> np.ndarray:
        """95 % confidence half-width of the mean over tasks, 1.96 · std / sqrt(tasks)."""
        return half_width(self.accuracy)

    def condition_number(self) -> np.ndarray:
        """Geometric mean over tasks: condition numbers spread over orders of magnitude."""
        return np.power(10.0, self.log_condition.mean(0))


def half_width(samples: np.ndarray) -> np.ndarray:
    """1.96 · std / sqrt(n) over the first axis; std with n - 1."""
    return 1.96 * samples.std(0, ddof=1) / np.sqrt(len(samples))


def measure_task(
    model: FunctionalModule,
    rule: Rule,
    params: Params,
    own: Params,
    task: Task,
    *,
    steps: Sequence[int],
    subset: str = "cls",
) -> tuple[list[float], list[float]]:
    """Query accuracy and log10 condition number at each of the (ascending) steps of one task.

    Only the parameters of the current step exist: a hundred steps need no more memory than one.
    """
    accuracies: list[float] = []
    log_conditions: list[float] = []
    walker = walk(model, rule, params, own, task.support_x, task.support_y)
    current = params
    taken = 0
    for step in steps:
        while taken < step:
            current, _ = next(walker)
            taken += 1
        with torch.no_grad():
            logits = model(current, task.query_x).logits
            gram = support_gram(
                model,
                task.support_x,
                task.support_y,
                params=current,
                subset=subset,
                check_finite=False,
            )
            accuracies.append((logits.argmax(-1) == task.query_y).double().mean().item())
            log_conditions.append(log_condition_number(gram, check_finite=False).item())
    return accuracies, log_conditions


def measure_tasks(
    model: FunctionalModule,
    rule: Rule,
    params: Params,
    own: Params,
    tasks: Iterable[Task],
    *,
    steps: Sequence[int],
    subset: str = "cls",
    progress: Callable[[], None] | None = None,
) -> Measurement:
    """:func:`measure_task` over many tasks; ``progress`` is called after each."""
    ordered = tuple(sorted(set(steps)))
    rows = []
    for task in tasks:
        rows.append(measure_task(model, rule, params, own, task, steps=ordered, subset=subset))
        if progress is not None:
            progress()
    return Measurement(
        steps=ordered,
        accuracy=_table([accuracy for accuracy, _ in rows], len(ordered)),
        log_condition=_table([log_condition for _, log_condition in rows], len(ordered)),
    )


def _table(rows: list[list[float]], columns: int) -> np.ndarray:
    return np.array(rows, dtype=np.float64).reshape(-1, columns)  # which is a table even without rows
