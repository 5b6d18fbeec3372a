"""The processes that share one run. :class:`Team` itself is a team of one, where everything is trivial."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from firststep.distributed.ordered_sum import OrderedSum

T = TypeVar("T")


class Team:
    """A single process.

    Work is numbered 0, 1, 2, ... and sharded round-robin: number t belongs to rank t mod size. Results are
    put together in the order of the numbers, so they do not depend on how many ranks there are.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def is_rank0(self) -> bool:
        """Whether this is rank 0, the only rank that writes files and prints."""
        return self.rank == 0

    def share(self, numbers: range) -> range:
        """This rank's part of the work."""
        return numbers[self.rank :: self.size]

    def ordered_sum(self, terms: int) -> OrderedSum:
        """A sum of that many terms, at least one from every rank, with the same bits on any team."""
        return OrderedSum()

    def gather(self, rows: np.ndarray, total: int) -> np.ndarray:
        """Float64 rows of this rank's :meth:`share` of ``range(total)`` → the rows of all ranks, in order."""
        return rows

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank; the same answer on all."""
        return flag

    def barrier(self) -> None:
        """Return when every rank has got here."""

    def on_rank0(self, action: Callable[[], T]) -> T:
        """Rank 0 acts while the others wait; all return its result or raise its error."""
        return action()

    def on_all_ranks(self, action: Callable[[], T]) -> T:
        """Rank 0 acts first (and builds caches), then the others; an error of one is raised on all."""
        return action()

    def device(self, choose: Callable[[], torch.device]) -> torch.device:
        """The device of this rank, given the one that the user chose."""
        return choose()
