"""Stream answers as lines of JSON, and stop when the client disconnects."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.types import Receive, Scope, Send

from firststep.page.messages import Refused
from firststep.page.turns import Stopped, Turns

Result = TypeVar("Result")
Event = dict[str, Any]
Events = Callable[[int, threading.Event], Iterator[Event]]
"""Function called in a worker thread with its worker number and an event that asks it to stop."""


class Lines:
    """An ASGI response of type ``application/x-ndjson``; each line is sent as soon as it exists."""

    def __init__(self, events: AsyncGenerator[Event, None]) -> None:
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/x-ndjson"), (b"x-accel-buffering", b"no")]
        gone = asyncio.create_task(_until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while (event := await self._next(gone)) is not None:
                line = json.dumps(event, allow_nan=False, separators=(",", ":")).encode() + b"\n"
                await send({"type": "http.response.body", "body": line, "more_body": True})
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            await self._events.aclose()

    async def _next(self, gone: asyncio.Task[None]) -> Event | None:
        """Return the next event; None after the last one or when the client has gone."""
        event = asyncio.ensure_future(anext(self._events, None))
        try:
            await asyncio.wait({event, gone}, return_when=asyncio.FIRST_COMPLETED)
            return event.result() if event.done() and not gone.done() else None
        finally:
            if not event.done():
                event.cancel()
                await asyncio.wait({event})  # a running generator cannot be closed


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(receive: Receive, work: Awaitable[Result]) -> Result:
    """Await some work; cancel it if the client disconnects first."""
    gone = asyncio.create_task(_until_gone(receive))
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Refused(HTTPStatus.BAD_REQUEST, "the client has gone")
        return task.result()
    finally:
        gone.cancel()
        task.cancel()


async def in_turn(
    turns: Turns, events: Events, describe: Callable[[BaseException], str], *, patient: bool = False
) -> AsyncGenerator[Event, None]:
    """Yield the events of a job that runs in a worker thread when its turn comes.

    First come its positions in the queue (unless it is patient) and ``start``. An exception of the job
    becomes a last event ``error``. Closing the generator asks the job to stop.
    """
    ticket = turns.enter(patient=patient)
    stop = threading.Event()
    future: Future[None] | None = None
    loop = asyncio.get_running_loop()
    found: asyncio.Queue[Event | None] = asyncio.Queue()

    def put(event: Event | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
            loop.call_soon_threadsafe(found.put_nowait, event)

    def job(place: int, stop: threading.Event) -> None:
        try:
            for event in events(place, stop):
                if stop.is_set():
                    return
                put(event)
        except Stopped:
            return
        except BaseException as error:
            put({"type": "error", "message": describe(error)})
        finally:
            put(None)

    try:
        while ticket.place is None:
            if not patient:
                yield {"type": "waiting", "ahead": ticket.ahead}
            await ticket.change()
        if not patient:
            yield {"type": "start"}
        future = turns.start(ticket, job, stop)
        while (event := await found.get()) is not None:
            yield event
    finally:
        stop.set()
        if future is None:
            turns.leave(ticket)
