"""Run a fixed number of jobs at once in worker threads; the others wait in order and know their position."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar

import torch

from firststep.page.messages import Refused

Result = TypeVar("Result")
Job = Callable[[int, threading.Event], Result]
"""Function called with its worker number, 0..at_once-1, and an event that asks it to stop."""


class Ticket:
    """A position in the queue; ``place`` is the worker number once it is its turn."""

    def __init__(self, line: deque[Ticket]) -> None:
        self.line = line
        self._changed = asyncio.Event()
        self.place: int | None = None

    @property
    def ahead(self) -> int:
        """Return the number of tickets before this one in the same queue."""
        return self.line.index(self)

    async def change(self) -> None:
        """Wait until it is its turn or fewer tickets are ahead."""
        await self._changed.wait()
        self._changed.clear()

    def tell(self) -> None:
        self._changed.set()


class Turns:
    """A queue of jobs. Call its methods in the thread of the event loop; jobs run in worker threads.

    Args:
        at_once: number of jobs that run at the same time.
        waiting: number of jobs that may wait; one more is refused.
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self._line: deque[Ticket] = deque()
        self._patient: deque[Ticket] = deque()
        self._free = list(reversed(range(at_once)))
        self._waiting = waiting
        # One torch thread per job: jobs would compete for the cores, and small networks gain nothing.
        self._threads = ThreadPoolExecutor(
            at_once, thread_name_prefix="firststep-page", initializer=torch.set_num_threads, initargs=(1,)
        )

    def check_open(self) -> None:
        """Raise ``Refused`` if too many jobs wait."""
        if not self._free and len(self._line) >= self._waiting:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{len(self._line)} requests wait already; try again in a moment",
            )

    def enter(self, *, patient: bool = False) -> Ticket:
        """Join the queue; a ``patient`` ticket lets all others go first and is never refused."""
        if not patient:
            self.check_open()
        line = self._patient if patient else self._line
        ticket = Ticket(line)
        line.append(ticket)
        self._call_next()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Release the worker, or leave the queue."""
        if ticket.place is None:
            ticket.line.remove(ticket)
        else:
            self._free.append(ticket.place)
        self._call_next()

    def _call_next(self) -> None:
        while self._free and (line := self._line or self._patient):
            first = line.popleft()
            first.place = self._free.pop()
            first.tell()
        for ticket in self._line:
            ticket.tell()

    def start(self, ticket: Ticket, job: Job[Result], stop: threading.Event) -> Future[Result]:
        """Run a job whose turn it is. Its worker is free again when the thread ends: a client may disconnect
        long before its job notices."""
        assert ticket.place is not None
        loop = asyncio.get_running_loop()
        future = self._threads.submit(job, ticket.place, stop)

        def free(_: Future[Result]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
                loop.call_soon_threadsafe(self.leave, ticket)

        future.add_done_callback(free)
        return future

    async def run(self, job: Job[Result]) -> Result:
        """Run a job and return its result; cancelling the caller asks the job to stop."""
        ticket = self.enter()
        stop = threading.Event()
        future: Future[Result] | None = None
        try:
            while ticket.place is None:
                await ticket.change()
            future = self.start(ticket, job, stop)
            return await asyncio.wrap_future(future)
        finally:
            stop.set()
            if future is None:
                self.leave(ticket)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class Stopped(Exception):
    """Raised in a job that was asked to stop."""


def check(stop: threading.Event, *_: Any) -> None:
    if stop.is_set():
        raise Stopped
