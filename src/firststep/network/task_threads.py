"""Parallel tasks on a CPU: one task per group of threads, instead of all threads per operation.

Operations of a small network take microseconds, so splitting each one between cores costs as much as it
saves. Whole tasks split without loss. Each task has its own threads, and results come in the order of the
tasks, so no value depends on which thread is faster.
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
    """The split of this process's CPU threads between tasks."""

    workers: int
    """Number of tasks that are computed at the same time."""
    threads: int
    """Number of threads per task."""


def share_threads(task_bytes: int, budget: int) -> Sharing:
    """Return one worker per thread, as far as the tasks' memory stays within ``budget`` bytes.

    The result depends only on the network, the shapes and the thread count, not on timing, so a run repeats
    bit for bit. With one thread per task, results equal those of a single thread.
    """
    threads = torch.get_num_threads()
    if not _threads_are_per_thread() or torch.is_autocast_enabled("cpu"):  # workers would not inherit them
        return Sharing(1, threads)
    workers = max(1, min(threads, budget // max(1, task_bytes)))
    return Sharing(workers, threads // workers)


@cache
def _threads_are_per_thread() -> bool:
    """Return whether the thread count is a setting of the calling thread, not of the process."""
    return "parallel backend: OpenMP" in torch.__config__.parallel_info()


@contextmanager
def using_threads(number: int) -> Iterator[None]:
    """Set the number of threads for operations that this thread calls inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_order(compute: Callable[[Item], Result], items: Iterable[Item], sharing: Sharing) -> Iterator[Result]:
    """Yield ``map(compute, items)`` computed by the workers; read only a few items ahead."""
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
        # These settings are global to the process, so make them once around all workers.
        with twice_differentiable(replace=False):
            try:
                for item in items:
                    waiting.append(pool.submit(contextvars.copy_context().run, run, item))
                    if len(waiting) > sharing.workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:  # no worker may outlive these settings
                pool.shutdown(cancel_futures=True)
    finally:
        torch.set_num_threads(threads)  # the default for threads that start later


def _start(threads: int) -> None:
    """Set the thread count of a new worker; read it first, because the first use resets it."""
    torch.get_num_threads()
    torch.set_num_threads(threads)


class Replicas:
    """Copies of an object that calls a module, one per worker.

    A functional call puts its parameters into the module while it runs, so two threads cannot share a module.
    The copies share all tensors with the original. The original is used only if there is one worker.
    """

    def __init__(self, original: Owner, module: nn.Module, sharing: Sharing) -> None:
        tensors = [*module.parameters(), *module.buffers()]
        number = sharing.workers if sharing.workers > 1 else 0
        shared = [{id(tensor): tensor for tensor in tensors} for _ in range(number)]
        try:
            copies = [copy.deepcopy(original, memo) for memo in shared]
        except Exception:  # a network may hold objects that cannot be copied
            copies, sharing = [], Sharing(1, torch.get_num_threads())
        self.sharing = sharing
        """The given sharing, or one worker if the object cannot be copied."""
        self._free = deque(copies or [original])

    def use(self, compute: Callable[..., Result], *arguments: object) -> Result:
        """Return ``compute(copy, *arguments)`` with a copy that no other worker uses meanwhile."""
        mine = self._free.pop()
        try:
            return compute(mine, *arguments)
        finally:
            self._free.append(mine)
