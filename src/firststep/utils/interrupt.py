"""Ctrl-C and SIGTERM ask a run to stop after the current update, so that it can save."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class StopRequest:
    """True once a signal has asked to stop."""

    def __init__(self) -> None:
        self.signal_number: int | None = None

    def __bool__(self) -> bool:
        return self.signal_number is not None


@contextlib.contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Within the block, the first SIGINT or SIGTERM only sets the request; a second one acts at once."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # signals reach the main thread alone
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
