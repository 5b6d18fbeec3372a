"""Sums of gradients whose bits do not depend on how many processes computed the terms.

Floating-point addition is not associative: if every rank summed its tasks and the sums were all-reduced, two
ranks would give (g0 + g2) + (g1 + g3) where one gives ((g0 + g1) + g2) + g3, and the runs would slowly drift
apart. Here every entry is added in the order of the tasks, so one, two or four processes give equal bits.

Cost. With P bytes of parameters on N ranks, a ring all-reduce moves 2 (N-1)/N P per rank: half to
reduce-scatter, half to gather. Here each *task* takes the first half as an all-to-all (slice j of the
gradient goes to rank j, which adds the slices in task order), and the second half happens once. With one task
per rank that is the same number of bytes; with m tasks per rank it is (m + 1)/2 times as many.

Overlap. The gradient of a task arrives all at once, so within a task there is nothing to overlap with. But
the slices of one task are sent while the next one is computed: only the last exchange and the gathering are
waited for, as with a ring all-reduce of the ranks' sums. So equal bits take no extra time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor
from torch import distributed as dist

Tensors = dict[str, Tensor]


class OrderedSum:
    """((g0 + g1) + g2) + ... of named tensors, in the order in which they are added."""

    def __init__(self) -> None:
        self._total: Tensors = {}

    def add(self, term: Tensors) -> None:
        total = self._total
        self._total = {name: total[name] + value for name, value in term.items()} if total else dict(term)

    def result(self) -> Tensors:
        """Return the sum of all terms."""
        return self._total


class DistributedSum(OrderedSum):
    """The same sum over the ranks of the process group: term t comes from rank t mod size.

    Each rank calls :meth:`add` for its own terms, in their order, and then :meth:`result`; all get the sum.
    Tensors are of one dtype and every rank has at least one term.

    Args:
        terms: number of terms of all ranks together.
        size: number of ranks.
        device: device on which the group's backend exchanges tensors.
        exchange: context around every exchange with the other ranks.
    """

    def __init__(
        self,
        terms: int,
        size: int,
        device: torch.device,
        exchange: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__()
        if terms < size:
            raise ValueError(f"a sum of {terms} terms cannot be shared by {size} ranks")
        self._terms, self._size, self._device = terms, size, device
        self._exchange_context = exchange
        self._round = 0
        self._like: Tensors = {}
        self._slice = 0
        self._pending: tuple[dist.Work, Tensor, Tensor] | None = None
        self._sum: Tensor | None = None
        """Sum over the terms of this rank's slice."""

    def add(self, term: Tensors) -> None:
        if not self._like:
            self._like = term
            entries = sum(value.numel() for value in term.values())
            self._slice = -(-entries // self._size)
        flat = torch.cat([value.detach().reshape(-1) for value in term.values()]).to(self._device)
        padding = self._size * self._slice - len(flat)
        self._exchange(torch.cat([flat, flat.new_zeros(padding)]))

    def result(self) -> Tensors:
        dtype = next(iter(self._like.values())).dtype
        while self._round * self._size < self._terms:  # the last round, if this rank has no term in it
            self._exchange(torch.empty(0, dtype=dtype, device=self._device))
        self._collect()
        assert self._sum is not None
        flat = self._sum.new_empty(self._size * self._slice)
        with self._exchange_context():
            dist.all_gather(list(flat.chunk(self._size)), self._sum)
        sizes = [value.numel() for value in self._like.values()]
        parts = flat[: sum(sizes)].split(sizes)
        return {
            name: part.view(value.shape).to(value.device)
            for (name, value), part in zip(self._like.items(), parts, strict=True)
        }

    def _exchange(self, flat: Tensor) -> None:
        """Start the next round: slice j of every rank's term goes to rank j."""
        self._collect()
        present = min(self._size, self._terms - self._round * self._size)  # ranks with a term in this round
        receive = [self._slice] * present + [0] * (self._size - present)
        send = [len(flat) // self._size] * self._size
        received = flat.new_empty(present * self._slice)
        with self._exchange_context():
            work = dist.all_to_all_single(received, flat, receive, send, async_op=True)
        assert work is not None
        self._pending = work, received, flat  # the buffers must stay alive until it has been sent
        self._round += 1

    def _collect(self) -> None:
        """Wait for the pending round and add its slices in the order of the ranks, hence of the terms."""
        if self._pending is None:
            return
        work, received, _ = self._pending
        with self._exchange_context():
            work.wait()
        for part in received.split(self._slice):
            self._sum = part if self._sum is None else self._sum + part
        self._pending = None
