"""Import Ray on demand, connect to it, and suppress its notices.

Ray (2.60) writes notices about workers and nodes to the driver's standard output, from a thread of its own
and whatever its logging options are. They would break the progress view and the tables. Ray's own logs keep
them, and our events report what matters.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

from firststep.errors import FirststepError

CONNECT_TIMEOUT = 10.0  # seconds
NOTICES_THREAD = "ray_listen_error_messages"
_shutting_down = threading.local()


def import_ray() -> Any:
    """Return the module ``ray``; the error says how to install it."""
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise FirststepError("the executor ray needs Ray: pip install 'firststep[ray]'") from None


@contextlib.contextmanager
def ray_connection(ray: Any, address: str | None) -> Iterator[None]:
    """Connect to Ray within the block; an existing connection is used and left open."""
    if ray.is_initialized():
        yield
        return
    _refuse_unreachable(address)
    try:
        # Workers' output and Ray's own notices would run through the progress view.
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f" at `address={address}`" if address else ""
        reason = " ".join(str(error).split())
        raise FirststepError(f"no Ray cluster can be reached{where}: {reason}") from None
    try:
        yield
    finally:
        _shutting_down.now = True  # Ray writes notices that it held back as repetitions in this very thread
        try:
            ray.shutdown()
        finally:
            _shutting_down.now = False


def _refuse_unreachable(address: str | None) -> None:
    """Raise an error if nothing listens at the address: Ray itself would try for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return  # auto, local, or left to Ray
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT).close()
    except OSError as error:
        reason = error.strerror or error
        raise FirststepError(f"no Ray cluster can be reached at `address={address}`: {reason}") from None


@contextlib.contextmanager
def event_queue(ray: Any) -> Iterator[Any]:
    """Yield a queue for events of the workers, on the driver's node: other nodes may die."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    this_node = ray.get_runtime_context().get_node_id()
    options = {
        "num_cpus": 0,
        "scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(node_id=this_node, soft=False),
    }
    queue = importlib.import_module("ray.util.queue").Queue(actor_options=options)
    try:
        yield queue
    finally:
        queue.shutdown(force=True)


class _WithoutNotices:
    """A stream that drops the text of Ray's thread."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if threading.current_thread().name == NOTICES_THREAD or getattr(_shutting_down, "now", False):
            return len(text)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def without_notices() -> Iterator[None]:
    """Drop Ray's notices from standard output within the block."""
    filtered: Any = _WithoutNotices(sys.stdout)
    with contextlib.redirect_stdout(filtered):
        yield
