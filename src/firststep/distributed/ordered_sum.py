"""Sums of gradients whose bits do not depend on how many processes computed the terms.

Floating-point addition is not associative: if every rank summed its share and the sums were all-reduced, two
ranks would give (g0 + g2) + (g1 + g3) where one gives ((g0 + g1) + g2) + g3, and training would slowly drift
apart. Here every entry is added in the order of the tasks, so one, two or four processes give equal bits.

What it costs. With P bytes of parameters on N ranks, a ring all-reduce moves 2 (N-1)/N P per rank: half to
reduce-scatter, half to gather. Here each *task* takes the first half as an all-to-all (slice j of the
gradient goes to rank j, which adds the slices in task order), and the second half comes once. With one task a
rank that is the same number of bytes; with m tasks a rank it is (m + 1)/2 times as many.

Overlap. The gradient of a task arrives all at once, so within a task there is nothing to overlap with. But
the slices of one task travel while the next one is computed: only the last exchange and the gathering are
waited for, which is what a ring all-reduce of the share's sum would also have cost. So equal bits are free.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor
from torch import distributed as dist

from firststep.network import Params


class OrderedSum:
    """((g0 + g1) + g2) + ... of named tensors, in the order in which they are added."""

    def __init__(self) -> None:
        self._total: Params = {}

    def add(self, term: Params) -> None:
        total = self._total
        self._total = {name: total[name] + value for name, value in term.items()} if total else dict(term)

    def result(self) -> Params:
        """The sum of all terms."""
        return self._total


class SharedSum(OrderedSum):
    """The same over the ranks of the process group: term t comes from rank t mod size.

    Each rank calls :meth:`add` for its own terms, in their order, and then :meth:`result`; all get the sum.
    Tensors are of one dtype and every rank has at least one term.

    Args:
        terms: of all ranks together.
        size: of the process group.
        device: where the group's backend exchanges tensors.
        connected: wraps every wait for the others.
    """

    def __init__(
        self,
        terms: int,
        size: int,
        device: torch.device,
        connected: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__()
        if terms < size:
            raise ValueError(f"a sum of {terms} terms cannot be shared by {size} ranks")
        self._terms, self._size, self._device = terms, size, device
        self._connected = connected
        self._round = 0
        self._like: Params = {}
        self._slice = 0
        self._travelling: tuple[dist.Work, Tensor, Tensor] | None = None
        self._sum: Tensor | None = None
        """Of this rank's slice."""

    def add(self, term: Params) -> None:
        if not self._like:
            self._like = term
            entries = sum(value.numel() for value in term.values())
            self._slice = -(-entries // self._size)
        flat = torch.cat([value.detach().reshape(-1) for value in term.values()]).to(self._device)
        padding = self._size * self._slice - len(flat)
        self._exchange(torch.cat([flat, flat.new_zeros(padding)]))

    def result(self) -> Params:
        dtype = next(iter(self._like.values())).dtype
        while self._round * self._size < self._terms:  # a last round in which this rank has no term
            self._exchange(torch.empty(0, dtype=dtype, device=self._device))
        self._collect()
        assert self._sum is not None
        flat = self._sum.new_empty(self._size * self._slice)
        with self._connected():
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
        present = min(self._size, self._terms - self._round * self._size)  # ranks with a term this time
        receive = [self._slice] * present + [0] * (self._size - present)
        send = [len(flat) // self._size] * self._size
        received = flat.new_empty(present * self._slice)
        with self._connected():
            work = dist.all_to_all_single(received, flat, receive, send, async_op=True)
        assert work is not None
        self._travelling = work, received, flat  # what is being sent must stay alive
        self._round += 1

    def _collect(self) -> None:
        """Wait for the round under way and add its slices in the order of the ranks, so of the terms."""
        if self._travelling is None:
            return
        work, received, _ = self._travelling
        with self._connected():
            work.wait()
        for part in received.split(self._slice):
            self._sum = part if self._sum is None else self._sum + part
        self._travelling = None
