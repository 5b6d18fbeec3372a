"""The processes that share one run. :class:`Team` itself is the team of one: everything is trivial."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from firststep.distributed.ordered_sum import OrderedSum

T = TypeVar("T")


class Team:
    """A process alone.

    Work that is numbered 0, 1, 2, ... is dealt like cards: number t belongs to rank t mod size. Nothing in
    a result depends on the number of ranks: what was dealt is put together in the order of the numbers.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def is_rank0(self) -> bool:
        """The leader alone writes files and talks."""
        return self.rank == 0

    def share(self, numbers: range) -> range:
        """This rank's part of the work."""
        return numbers[self.rank :: self.size]

    def ordered_sum(self, terms: int) -> OrderedSum:
        """A sum of that many terms, at least one of every rank, that has the same bits on any team."""
        return OrderedSum()

    def gather(self, rows: np.ndarray, total: int) -> np.ndarray:
        """Float64 rows of this rank's :meth:`share` of ``range(total)`` → those of all, in order."""
        return rows

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank: all learn the same."""
        return flag

    def on_rank0(self, action: Callable[[], T]) -> T:
        """The leader acts and the others wait: all get its result, or all its error."""
        return action()

    def on_all_ranks(self, action: Callable[[], T]) -> T:
        """All act, the leader before the others (who find caches made); an error of one is one of all."""
        return action()

    def device(self, choose: Callable[[], torch.device]) -> torch.device:
        """The device of this rank, given the one that the user chose."""
        return choose()
