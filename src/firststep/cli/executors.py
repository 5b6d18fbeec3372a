"""The flags ``--executor``, ``--address`` and ``--at-once``, which select where runs are trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from firststep.errors import FirststepError

if TYPE_CHECKING:
    from firststep.jobs import Executor

ExecutorName = Literal["local", "inline", "ray"]


def choose_executor(name: ExecutorName, address: str | None, at_once: int | None) -> Executor:
    """Return the executor that the flags select."""
    from firststep.jobs import InlineExecutor, LocalExecutor, RayExecutor

    if name != "local" and at_once is not None:
        others = {"ray": "with Ray the cluster's resources decide", "inline": "inline is one at a time"}
        raise FirststepError(f"--at-once is for --executor local: {others[name]}")
    if name != "ray" and address is not None:
        raise FirststepError("--address goes with --executor ray")
    if name == "ray":
        return RayExecutor(address=address)
    return InlineExecutor() if name == "inline" else LocalExecutor(at_once=at_once)
