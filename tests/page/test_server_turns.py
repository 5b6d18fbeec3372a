"""Turns: a fixed number at once, the others in order, patient ones last; a client that leaves is removed."""

from __future__ import annotations

import asyncio
import threading

import pytest
import torch

from firststep.page.messages import Refused
from firststep.page.turns import Stopped, Turns, check


def test_first_come_first_served_and_the_patient_last() -> None:
    async def scenario() -> None:
        turns = Turns(1, 3)
        running = turns.enter()
        assert running.place == 0
        late = turns.enter(patient=True)
        first, second, third = (turns.enter() for _ in range(3))
        assert [ticket.ahead for ticket in (first, second, third)] == [0, 1, 2]
        with pytest.raises(Refused, match="3 requests wait already"):
            turns.enter()
        turns.leave(second)  # it gives up
        assert third.ahead == 1
        turns.leave(running)
        assert (first.place, third.place, late.place) == (0, None, None)
        turns.leave(first)
        assert (third.place, late.place) == (0, None)
        turns.leave(third)
        assert late.place == 0
        turns.leave(late)
        assert turns.enter().place == 0
        turns.close()

    asyncio.run(scenario())


def test_a_place_is_free_when_its_thread_has_ended_and_not_before() -> None:
    async def scenario() -> None:
        turns = Turns(1, 3)
        began, end = threading.Event(), threading.Event()

        def job(place: int, stop: threading.Event) -> bool:
            began.set()
            end.wait(60)
            return stop.is_set()

        task = asyncio.create_task(turns.run(job))
        await asyncio.to_thread(began.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        waiting = turns.enter()
        assert waiting.place is None
        end.set()
        while waiting.place is None:
            await asyncio.wait_for(waiting.change(), 60)
        assert waiting.place == 0
        turns.leave(waiting)
        assert await turns.run(lambda place, stop: (place, torch.get_num_threads())) == (0, 1)
        with pytest.raises(ZeroDivisionError):
            await turns.run(lambda place, stop: 1 // 0)
        assert await turns.run(lambda place, stop: place) == 0
        turns.close()

    asyncio.run(scenario())


def test_a_job_is_asked_to_stop() -> None:
    stop = threading.Event()
    check(stop)
    stop.set()
    with pytest.raises(Stopped):
        check(stop, "cross-validation", 1, 5)
