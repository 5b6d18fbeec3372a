"""Ray's notices kept out of what we print.

Ray (2.60) writes what happens to workers and nodes on the driver's standard output, from a thread of its own,
pages of it when a node dies, whatever its logging options are. There they would tear the progress view and
the tables. They are in Ray's own logs; what matters of them is in our reports.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

RAYS_THREAD = "ray_listen_error_messages"
_leaving = threading.local()


class _Filtered:
    """The stream itself, but for what Ray's thread writes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if threading.current_thread().name == RAYS_THREAD or getattr(_leaving, "now", False):
            return len(text)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def without_notices() -> Iterator[None]:
    """Within the block, standard output drops what Ray's listening thread writes."""
    filtered: Any = _Filtered(sys.stdout)
    with contextlib.redirect_stdout(filtered):
        yield


@contextlib.contextmanager
def dropping_leftovers() -> Iterator[None]:
    """Around ``ray.shutdown``, in whose calling thread Ray writes the notices it held back as repetitions."""
    _leaving.now = True
    try:
        yield
    finally:
        _leaving.now = False
