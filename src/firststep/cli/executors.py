"""Where the runs of a command are trained: the flags ``--executor``, ``--address`` and ``--at-once``."""

from __future__ import annotations

from typing import Literal

from firststep.errors import FirststepError
from firststep.jobs import Executor, LocalExecutor, RayExecutor

ExecutorName = Literal["local", "ray"]


def choose_executor(name: ExecutorName, address: str | None, at_once: int | None) -> Executor:
    """The executor that the flags ask for."""
    if name == "ray":
        if at_once is not None:
            raise FirststepError("--at-once is for --executor local: with Ray the cluster's resources decide")
        return RayExecutor(address=address)
    if address is not None:
        raise FirststepError("--address goes with --executor ray")
    return LocalExecutor(at_once=at_once)
