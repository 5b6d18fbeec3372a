"""Losses of the tasks of a meta-batch: on the device until they are read, then of all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from firststep.conditioning import in_float64
from firststep.distributed import Team
from firststep.meta_learner import TaskGradient
from firststep.network import Params


class UnreadReport(NamedTuple):
    """The losses of a meta-update on the device: nothing waits for them."""

    update: int
    """Number of the update, from 1."""
    numbers: range
    """Of the training episodes."""
    rows: Tensor
    """[tasks of this rank, columns of :class:`BatchReport`]"""


def unread_report(
    update: int, numbers: range, mine: list[TaskGradient], finite: Tensor, norm: Tensor
) -> UnreadReport:
    """Return the report of this rank's tasks; the last two columns are of the update.

    Args:
        update: number of the update.
        numbers: of the episodes of all ranks.
        mine: this rank's tasks.
        finite: whether the gradient is finite.
        norm: of the gradient.
    """
    rows = []
    for task in mine:
        losses = task.loss, task.report.query_loss, task.report.conditioning
        values = (*losses, *task.report.support_losses, norm, finite.to(norm.dtype))
        rows.append(torch.stack([in_float64(value) for value in values]))
    return UnreadReport(update, numbers, torch.stack(rows))


def all_finite(gradients: Params) -> Tensor:
    """Return whether all entries are finite, as a tensor."""
    return torch.stack([gradient.isfinite().all() for gradient in gradients.values()]).all()


@dataclass(frozen=True)
class BatchReport:
    """The losses of a meta-batch: one row per task, in the order of the episodes."""

    update: int
    """Number of the update, from 1."""
    numbers: range
    """Numbers of the training episodes."""
    rows: np.ndarray
    """[tasks, 3 + K + 2]: outer loss, query loss, conditioning, support losses at stages 0..K-1, and of the
    whole update the norm of the gradient and whether it is finite"""

    @staticmethod
    def read(team: Team, unread: Sequence[UnreadReport]) -> list[BatchReport]:
        """Return the reports of all ranks; one transfer from the device for all of them."""
        values = torch.cat([each.rows for each in unread]).cpu().split([len(each.rows) for each in unread])
        return [
            BatchReport(each.update, each.numbers, team.gather(rows.numpy(), len(each.numbers)))
            for each, rows in zip(unread, values, strict=True)
        ]

    @property
    def gradient_norm(self) -> float:
        return float(self.rows[0, -2])

    def mean_query_loss(self) -> float:
        return sum(self.rows[:, 1].tolist()) / len(self.rows)

    def mean_conditioning(self) -> float:
        return sum(self.rows[:, 2].tolist()) / len(self.rows)

    def describe_not_finite(self, seed: int) -> str | None:
        """Describe the first task with a loss that is not finite, or the gradient; None if all are finite."""
        if np.isfinite(self.rows[:, 0]).all() and self.rows[:, -1].all():
            return None
        for number, (_, query, conditioning, *rest) in zip(self.numbers, self.rows.tolist(), strict=True):
            if not np.isfinite(query + conditioning):
                shown = ", ".join(f"{loss:.3g}" for loss in rest[:-2])
                return (
                    f"training episode {number} (seed {seed}) has query loss {query:.3g}, "
                    f"conditioning {conditioning:.3g}, support losses {shown}"
                )
        return "the gradient is not finite although the losses are"
