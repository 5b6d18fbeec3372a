"""The processes that share one run. :class:`Team` itself is a team of one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from firststep.distributed.ordered_sum import OrderedSum

T = TypeVar("T")


class Team:
    """A single process.

    Work items are numbered 0, 1, 2, ... and sharded round-robin: item t belongs to rank t mod size. Results
    are joined in the order of the items, so they do not depend on the number of ranks.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def is_rank0(self) -> bool:
        """Whether this is rank 0, the only rank that writes files and prints."""
        return self.rank == 0

    def share(self, numbers: range) -> range:
        """Return this rank's part of the work items."""
        return numbers[self.rank :: self.size]

    def ordered_sum(self, terms: int) -> OrderedSum:
        """Return an empty sum for ``terms`` terms, at least one per rank; equal bits on any team."""
        return OrderedSum()

    def gather(self, rows: np.ndarray, total: int) -> np.ndarray:
        """Return the rows of all ranks in order, given those of this rank's share of ``range(total)``."""
        return rows

    def any(self, flag: bool) -> bool:
        """Return on every rank whether the flag is set on any of them."""
        return flag

    def barrier(self) -> None:
        """Wait until every rank has called this."""

    def on_rank0(self, action: Callable[[], T]) -> T:
        """Run the action on rank 0 only. All ranks return its result or raise its error."""
        return action()

    def on_all_ranks(self, action: Callable[[], T]) -> T:
        """Run the action on rank 0 first, then on the others. Raise an error of one on all."""
        return action()

    def device(self, choose: Callable[[], torch.device]) -> torch.device:
        """Return the device of this rank, given the user's choice."""
        return choose()
