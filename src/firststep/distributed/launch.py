"""Joining the processes that torchrun started.

torchrun (the same as ``python -m torch.distributed.run``) starts the processes and says by environment
variables who each of them is; it also starts them again when one dies. See docs/scaling.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
from torch import distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from firststep.distributed.ranks import Ranks, connected
from firststep.distributed.team import Team
from firststep.errors import FirststepError, unknown

BACKENDS = ("auto", "gloo", "nccl")

# The others wait while the leader builds an image cache, which may take hours for a large dataset. A process
# that dies is noticed at once all the same: its connections close.
LONGEST_WAIT = timedelta(hours=6)


def launched() -> bool:
    """Whether torchrun started this process; if so, it may start the same command again later."""
    return dist.is_available() and dist.is_torchelastic_launched()


@contextmanager
def join(backend: str = "auto") -> Iterator[Team]:
    """The team that this process belongs to: of all that torchrun started, or of one without it.

    Args:
        backend: of torch.distributed, for gradients: gloo exchanges through the memory of the hosts, nccl
            from GPU to GPU; auto takes what fits the device.
    """
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Team()
        return
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise FirststepError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but {', '.join(missing)} is not set: start the "
            "processes with torchrun, or unset WORLD_SIZE"
        )
    local_size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if threads := threads_of_a_process(local_size):
        torch.set_num_threads(threads)
    between_gpus = backend != "gloo" and torch.cuda.is_available() and dist.is_nccl_available()
    with connected():
        _init_process_group("cpu:gloo,cuda:nccl" if between_gpus else "gloo")
    try:
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        yield Ranks(local_rank=local_rank, local_size=local_size, backend=backend)
    finally:
        dist.destroy_process_group()


def _init_process_group(backends: str) -> None:
    """What ``init_process_group(backends)`` does, but safe for processes that torchrun started again.

    torchrun keeps one key-value store for all its restarts, and the addresses of processes that have died
    stay in it (pytorch issue 167288): who reads one before the new process has written its own tries to
    connect to nobody. So each restart, and each time that a process joins, has keys of its own.
    """
    store, rank, size = next(rendezvous("env://", timeout=LONGEST_WAIT))
    attempt = f"firststep/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/{size}"
    joined = store.add(f"{attempt}/joined/{rank}", 1)
    own = PrefixStore(f"{attempt}/{joined}", store)
    dist.init_process_group(backends, store=own, rank=rank, world_size=size, timeout=LONGEST_WAIT)


def threads_of_a_process(local_size: int) -> int:
    """An equal share of the host's cores, or 0 where OMP_NUM_THREADS has decided.

    torchrun itself sets OMP_NUM_THREADS to 1 for several processes if it is not set, so 1 decides nothing:
    ``--threads 1`` does.
    """
    if local_size == 1 or os.environ.get("OMP_NUM_THREADS", "1") != "1":
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // local_size)
