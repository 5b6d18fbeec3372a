"""Whole tasks side by side on the cores of a CPU, instead of one task whose every operation shares them.

The operations of a small network take microseconds: to divide each of them between cores costs as much as it
saves. Whole tasks divide without loss. Each is computed on threads of its own, and results come in the tasks'
order, so that no number depends on which thread was the faster.
"""

from __future__ import annotations

import contextvars
import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple, TypeVar

import torch
from torch import nn

from firststep.network.second_derivatives import twice_differentiable

Item = TypeVar("Item")
Result = TypeVar("Result")
Owner = TypeVar("Owner")


class Sharing(NamedTuple):
    """How tasks share this process's CPU threads."""

    workers: int
    """Tasks that are computed side by side."""
    threads: int
    """That each of them computes with."""


def share_threads(task_bytes: int, budget: int) -> Sharing:
    """As many tasks side by side as there are threads, while their memory stays within ``budget`` bytes.

    It follows from the network, the shapes and the number of threads alone, not from the clock: so that a run
    repeats bit for bit. Where there is one thread a task, the numbers are those of one thread in all.
    """
    threads = torch.get_num_threads()
    if not _threads_are_per_thread() or torch.is_autocast_enabled("cpu"):  # both would not reach the workers
        return Sharing(1, threads)
    workers = max(1, min(threads, budget // max(1, task_bytes)))
    return Sharing(workers, threads // workers)


@cache
def _threads_are_per_thread() -> bool:
    """Whether the number of threads that operations use is a setting of the thread that calls them."""
    return "parallel backend: OpenMP" in torch.__config__.parallel_info()


@contextmanager
def using_threads(number: int) -> Iterator[None]:
    """Inside, the operations of this thread use so many."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_order(compute: Callable[[Item], Result], items: Iterable[Item], sharing: Sharing) -> Iterator[Result]:
    """``map(compute, items)`` on the workers; few items are taken ahead of their results."""
    if sharing.workers == 1:
        yield from map(compute, items)
        return
    threads = torch.get_num_threads()
    graded = torch.is_grad_enabled()

    def run(item: Item) -> Result:
        with torch.set_grad_enabled(graded):
            return compute(item)

    pool = ThreadPoolExecutor(sharing.workers, initializer=_start, initargs=(sharing.threads,))
    waiting: deque[Future[Result]] = deque()
    try:
        # Its settings are the whole process's: made once around all workers, none of them changes anything.
        with twice_differentiable(replace=False):
            try:
                for item in items:
                    waiting.append(pool.submit(contextvars.copy_context().run, run, item))
                    if len(waiting) > sharing.workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:  # no worker outlives these settings
                pool.shutdown(cancel_futures=True)
    finally:
        torch.set_num_threads(threads)  # what threads that start later take


def _start(threads: int) -> None:
    """In a new worker. Torch gives a thread the process's number when it first computes: ask, then set."""
    torch.get_num_threads()
    torch.set_num_threads(threads)


class Replicas:
    """Copies of something that calls a module, one for each worker.

    A functional call puts its parameters into the module while it runs, so that two threads cannot share one.
    Copies share all tensors with the original, which is used by one worker alone or by none.
    """

    def __init__(self, original: Owner, module: nn.Module, sharing: Sharing) -> None:
        tensors = [*module.parameters(), *module.buffers()]
        number = sharing.workers if sharing.workers > 1 else 0
        shared = [{id(tensor): tensor for tensor in tensors} for _ in range(number)]
        try:
            copies = [copy.deepcopy(original, memo) for memo in shared]
        except Exception:  # a network may hold what cannot be copied
            copies, sharing = [], Sharing(1, torch.get_num_threads())
        self.sharing = sharing
        """As was asked for, or one worker where there can be no copies."""
        self._free = deque(copies or [original])

    def use(self, compute: Callable[..., Result], *arguments: object) -> Result:
        """``compute(a copy that no other thread uses, *arguments)``; called by one worker each."""
        mine = self._free.pop()
        try:
            return compute(mine, *arguments)
        finally:
            self._free.append(mine)
