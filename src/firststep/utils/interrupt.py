"""Ctrl-C and SIGTERM as requests to stop after the current update, so that a run can save."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class StopRequest:
    """A flag that is true once a signal asked to stop."""

    def __init__(self) -> None:
        self.signal_number: int | None = None

    def __bool__(self) -> bool:
        return self.signal_number is not None


@contextlib.contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Yield a request that the first SIGINT or SIGTERM sets; a second signal acts at once."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread receives signals
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handler(number: int, frame: FrameType | None) -> None:
        request.signal_number = number
        for each, action in before.items():
            signal.signal(each, action)

    for number in before:
        signal.signal(number, handler)
    try:
        yield request
    finally:
        for number, action in before.items():
            signal.signal(number, action)
