"""Serve one lesson: its steps first, then the number of steps that ``auto`` would choose."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing

from firststep.page.adapting import Lesson, auto_event, step_events
from firststep.page.few_shot import report_events
from firststep.page.models import PageModel
from firststep.page.streaming import Event, in_turn
from firststep.page.turns import Turns

REMEMBERED = 256


class Teacher:
    """Run lessons in turn.

    ``auto`` takes several times as long as the steps and does not depend on the queries. So it lets the steps
    of all waiting lessons go first. Its latest results are cached under a digest; no picture can be
    reconstructed from it.

    Args:
        turns: the queue of jobs.
        describe: function from an error to the line that the browser shows.
    """

    def __init__(self, turns: Turns, describe: Callable[[BaseException], str]) -> None:
        self._turns, self._describe = turns, describe
        self._choices: OrderedDict[str, Event] = OrderedDict()

    async def give(self, model: PageModel, lesson: Lesson, steps: int) -> AsyncGenerator[Event, None]:
        """Yield ``waiting``, ``start``, ``step`` for 0..steps, ``auto``, ``done``; ``error`` at any time.

        A model with fixed features gives ``progress`` and ``report`` instead of steps.
        """

        if model.has_fixed_features:
            async for event in self._report(model, lesson):
                yield event
            return

        def taken(place: int, stop: threading.Event) -> Iterator[Event]:
            return step_events(
                model.learner(place), model.preprocessing, lesson, steps=steps, rate=model.rate, stop=stop
            )

        def chosen(place: int, stop: threading.Event) -> Iterator[Event]:
            yield auto_event(model.learner(place), model.preprocessing, lesson, stop)

        key = _digest(model, lesson)
        began = time.monotonic()
        async with aclosing(in_turn(self._turns, taken, self._describe)) as events:
            async for event in events:
                if event["type"] == "start":
                    began = time.monotonic()
                yield event
                if event["type"] == "error":
                    return
        seconds = time.monotonic() - began
        if key in self._choices:
            self._choices.move_to_end(key)
            yield self._choices[key]
        else:
            async with aclosing(in_turn(self._turns, chosen, self._describe, patient=True)) as events:
                async for event in events:
                    yield event
                    if event["type"] == "error":
                        return
                    self._choices[key] = event
            while len(self._choices) > REMEMBERED:
                self._choices.popitem(last=False)
        yield {"type": "done", "seconds": round(seconds, 3)}

    async def _report(self, model: PageModel, lesson: Lesson) -> AsyncGenerator[Event, None]:
        def reported(place: int, stop: threading.Event) -> Iterator[Event]:
            learner, background = model.learner(place), model.trained.background
            return report_events(learner, model.preprocessing, background, model.features, lesson, stop)

        began = time.monotonic()
        async with aclosing(in_turn(self._turns, reported, self._describe)) as events:
            async for event in events:
                yield event
                if event["type"] == "error":
                    return
        yield {"type": "done", "seconds": round(time.monotonic() - began, 3)}


def _digest(model: PageModel, lesson: Lesson) -> str:
    found = hashlib.sha256(repr((model.name, lesson.labels, lesson.examples.shape)).encode())
    found.update(lesson.examples.tobytes())
    return found.hexdigest()
