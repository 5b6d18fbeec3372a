"""Ray itself: imported only when it is asked for, connected to, and listened to."""

from __future__ import annotations

import importlib
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from firststep.errors import FirststepError
from firststep.jobs.ray_notices import dropping_leftovers

TIME_TO_ANSWER = 10.0  # seconds that an address has


def import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise FirststepError("the executor ray needs Ray: pip install 'firststep[ray]'") from None


@contextmanager
def connection(ray: Any, address: str | None) -> Iterator[None]:
    if ray.is_initialized():
        yield
        return
    _refuse_unreachable(address)
    try:
        # Workers' output and Ray's own notices would run through the progress view.
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f" at --address {address}" if address else ""
        reason = " ".join(str(error).split())
        raise FirststepError(f"no Ray cluster can be reached{where}: {reason}") from None
    try:
        yield
    finally:
        with dropping_leftovers():
            ray.shutdown()


def _refuse_unreachable(address: str | None) -> None:
    """Where nobody listens, Ray itself would try for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return  # auto, local, or left to Ray
    try:
        socket.create_connection((host, int(port)), timeout=TIME_TO_ANSWER).close()
    except OSError as error:
        reason = error.strerror or error
        raise FirststepError(f"no Ray cluster can be reached at --address {address}: {reason}") from None


@contextmanager
def report_queue(ray: Any) -> Iterator[Any]:
    """Reports on their way home; kept on the driver's own node, which is not lost while we listen."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    here = ray.get_runtime_context().get_node_id()
    options = {
        "num_cpus": 0,
        "scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(node_id=here, soft=False),
    }
    queue = importlib.import_module("ray.util.queue").Queue(actor_options=options)
    try:
        yield queue
    finally:
        queue.shutdown(force=True)
