"""A team of several processes, connected by torch.distributed."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import torch
from torch import distributed as dist

from firststep.distributed.ordered_sum import DistributedSum, OrderedSum
from firststep.distributed.team import Team
from firststep.errors import FirststepError

T = TypeVar("T")


class ProcessGroupTeam(Team):
    """The processes of the default process group, which must be initialised.

    Small values (numbers, results, errors) go through gloo on the CPU, which does not wait for a GPU. Only
    gradients go from device to device.

    Args:
        local_rank: rank of this process on its host.
        local_size: number of processes on this host.
        backend: ``gloo``, ``nccl``, or ``auto`` for the one that fits the device.
    """

    def __init__(self, *, local_rank: int, local_size: int, backend: str) -> None:
        super().__init__(dist.get_rank(), dist.get_world_size())
        self._local_rank, self._local_size, self._backend = local_rank, local_size, backend
        self._gradients_on = torch.device("cpu")

    def ordered_sum(self, terms: int) -> OrderedSum:
        return DistributedSum(terms, self.size, self._gradients_on, lost_peers_explained)

    def gather(self, rows: np.ndarray, total: int) -> np.ndarray:
        longest = -(-total // self.size)
        padded = torch.zeros(longest, rows.shape[1], dtype=torch.float64)
        padded[: len(rows)] = torch.from_numpy(rows)
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        with lost_peers_explained():
            dist.all_gather(parts, padded)
        # Number t is row t // size of rank t mod size.
        return torch.stack(parts, 1).flatten(0, 1)[:total].numpy()

    def any(self, flag: bool) -> bool:
        flags = torch.tensor(int(flag))
        with lost_peers_explained():
            dist.all_reduce(flags, dist.ReduceOp.MAX)
        return bool(flags)

    def barrier(self) -> None:
        # dist.barrier would wait for the GPUs where nccl is used; a reduction on the CPU goes through gloo.
        with lost_peers_explained():
            dist.all_reduce(torch.zeros(()))

    def on_rank0(self, action: Callable[[], T]) -> T:
        value, error = _outcome(action) if self.is_rank0 else (None, None)
        outcome = [value, None if error is None else str(error)]
        with lost_peers_explained():
            dist.broadcast_object_list(outcome, src=0)
        if error is not None:
            raise error
        if outcome[1] is not None:
            raise FirststepError(outcome[1])
        return outcome[0]  # type: ignore[return-value]

    def on_all_ranks(self, action: Callable[[], T]) -> T:
        value: T | None = None
        for my_turn in (self.is_rank0, not self.is_rank0):
            error: Exception | None = None
            if my_turn:
                value, error = _outcome(action)
            who = "" if self.is_rank0 else f"rank {self.rank} on {socket.gethostname()}: "
            errors = self._all_gather(None if error is None else f"{who}{error}")
            if error is not None and self.is_rank0:
                raise error
            first = next(filter(None, errors), None)
            if first is not None:
                raise FirststepError(first) from error
        return value  # type: ignore[return-value]

    def device(self, choose: Callable[[], torch.device]) -> torch.device:
        device = self.on_all_ranks(lambda: self._local_device(choose()))
        kinds = self._all_gather(device.type)
        for rank, kind in enumerate(kinds):
            if kind != kinds[0]:
                raise FirststepError(
                    f"rank {rank} would work on {kind} and rank 0 on {kinds[0]}: give `device` for all alike"
                )
        if device.type == "cuda":
            torch.cuda.set_device(device)
            self._gradients_on = torch.device("cpu") if self._backend == "gloo" else device
        return device

    def _local_device(self, chosen: torch.device) -> torch.device:
        """Return the device of this process: with cuda, one GPU per process of a host."""
        if chosen.type != "cuda":
            if self._backend == "nccl":
                raise FirststepError(
                    f"`backend=nccl` exchanges between GPUs, but the device is {chosen}: "
                    "leave `backend` out, or use `device=cuda`"
                )
            return chosen
        gpus = torch.cuda.device_count()
        if self._backend != "gloo" and not dist.is_nccl_available():
            raise FirststepError("this build of PyTorch has no nccl for GPUs; use `backend=gloo`")
        if self._backend != "gloo" and self._local_size > gpus:
            raise FirststepError(
                f"{self._local_size} processes on a host with {gpus} GPUs, and nccl needs one each: lower "
                "--nproc-per-node, or let them share with `backend=gloo`"
            )
        if chosen == torch.device("cuda"):
            return torch.device("cuda", self._local_rank % gpus)
        if self._local_size > 1:
            raise FirststepError(
                f"`device={chosen}` is one GPU, but {self._local_size} processes run on this host: "
                "use `device=cuda`, and each takes its own"
            )
        return chosen

    def _all_gather(self, value: T) -> list[T]:
        """Return the values of all ranks, by rank."""
        values: list[T | None] = [None] * self.size
        with lost_peers_explained():
            dist.all_gather_object(values, value)
        return values  # type: ignore[return-value]


def _outcome(action: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return action(), None
    except Exception as error:  # whatever it is, the other ranks must learn of it instead of waiting
        return None, error


@contextmanager
def lost_peers_explained() -> Iterator[None]:
    """Turn the failure of an exchange with a process that is gone into one line that says so."""
    try:
        yield
    except RuntimeError as error:  # how gloo and nccl report it
        # Without gloo's source locations in front and its advice behind.
        reason = re.sub(r"\[/[^]]*\] ", "", str(error).splitlines()[0]).partition(". ")[0]
        raise FirststepError(
            f"another process of this run has ended or cannot be reached ({reason}); the last checkpoint "
            "stays, and torchrun --max-restarts N starts all again from it"
        ) from error
