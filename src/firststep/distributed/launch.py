"""Joining the processes that torchrun started.

torchrun (the same as ``python -m torch.distributed.run``) starts the processes, gives each its rank in
environment variables, and restarts all when one dies. See docs/scaling.md.
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

from firststep.distributed.process_group import ProcessGroupTeam, lost_peers_explained
from firststep.distributed.team import Team
from firststep.errors import FirststepError, unknown
from firststep.utils import available_cores

BACKENDS = ("auto", "gloo", "nccl")

# Rank 0 may take hours to build the image cache of a large dataset while the others wait. A process that dies
# is still noticed at once: its connections close.
TIMEOUT = timedelta(hours=6)


def launched() -> bool:
    """Return whether torchrun started this process. If so, it may restart the same command."""
    return dist.is_available() and dist.is_torchelastic_launched()


@contextmanager
def join(backend: str = "auto") -> Iterator[Team]:
    """Yield the team of this process: all processes of torchrun, or this one alone.

    Args:
        backend: how torch.distributed exchanges gradients. ``gloo`` goes through host memory, ``nccl`` from
            GPU to GPU; ``auto`` fits the device.
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
    if threads := threads_per_process(local_size):
        torch.set_num_threads(threads)
    between_gpus = backend != "gloo" and torch.cuda.is_available() and dist.is_nccl_available()
    with lost_peers_explained():
        _init_process_group("cpu:gloo,cuda:nccl" if between_gpus else "gloo")
    try:
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        yield ProcessGroupTeam(local_rank=local_rank, local_size=local_size, backend=backend)
    finally:
        dist.destroy_process_group()


def _init_process_group(backends: str) -> None:
    """Call ``init_process_group(backends)`` so that it is safe after a restart by torchrun.

    torchrun keeps one key-value store over all restarts, and the addresses of dead processes stay in it
    (pytorch issue 167288): a process that reads one before it is overwritten tries to connect to a dead
    peer. So every restart, and every call of :func:`join`, uses keys of its own.
    """
    # Default arguments in this module hold the process group that exists at its first import, which torch's
    # compiler makes. Gloo's threads would then outlive the group and could abort the process at its exit.
    import torch.distributed.nn.functional  # noqa: F401

    store, rank, size = next(rendezvous("env://", timeout=TIMEOUT))
    attempt = f"firststep/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/{size}"
    joined = store.add(f"{attempt}/joined/{rank}", 1)
    fresh = PrefixStore(f"{attempt}/{joined}", store)
    dist.init_process_group(backends, store=fresh, rank=rank, world_size=size, timeout=TIMEOUT)


def threads_per_process(local_size: int) -> int:
    """Return an equal part of the host's cores; 0 if OMP_NUM_THREADS sets another number.

    torchrun itself sets OMP_NUM_THREADS to 1 for several processes if it is not set, so 1 counts as unset;
    ``--threads 1`` asks for one thread.
    """
    if local_size == 1 or os.environ.get("OMP_NUM_THREADS", "1") != "1":
        return 0
    return max(1, available_cores() // local_size)
