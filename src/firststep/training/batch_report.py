"""Losses of the tasks of a meta-batch, collected from all ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firststep.distributed import Team
from firststep.meta_learner import TaskGradient
from firststep.network import Params


@dataclass(frozen=True)
class BatchReport:
    """The losses of a meta-batch: one row per task, in the order of the episodes."""

    numbers: range
    """Numbers of the training episodes."""
    rows: np.ndarray
    """[tasks, 3 + K]: outer loss, query loss, conditioning, support losses at stages 0..K-1"""

    @staticmethod
    def gather(team: Team, numbers: range, mine: list[TaskGradient]) -> BatchReport:
        """Gather the rows of all ranks, given this rank's tasks."""
        rows = []
        for task in mine:
            losses = (task.loss, task.report.query_loss, task.report.conditioning)
            rows.append([*(loss.item() for loss in losses), *task.report.support_losses.tolist()])
        return BatchReport(numbers, team.gather(np.array(rows, dtype=np.float64), len(numbers)))

    def mean_query_loss(self) -> float:
        return sum(self.rows[:, 1].tolist()) / len(self.rows)

    def mean_conditioning(self) -> float:
        return sum(self.rows[:, 2].tolist()) / len(self.rows)

    def describe_not_finite(self, gradients: Params, seed: int) -> str | None:
        """Describe the first task with a loss that is not finite, or the gradient; None if all are finite."""
        if np.isfinite(self.rows[:, 0]).all() and all(bool(g.isfinite().all()) for g in gradients.values()):
            return None
        for number, (_, query, conditioning, *support) in zip(self.numbers, self.rows.tolist(), strict=True):
            if not np.isfinite(query + conditioning):
                shown = ", ".join(f"{loss:.3g}" for loss in support)
                return (
                    f"training episode {number} (seed {seed}) has query loss {query:.3g}, "
                    f"conditioning {conditioning:.3g}, support losses {shown}"
                )
        return "the gradient is not finite although the losses are"
