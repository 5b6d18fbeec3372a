"""Decide how many jobs run at once on this machine, by its cores, memory and GPUs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from firststep.jobs.resource_estimate import ResourceEstimate, estimate_resources
from firststep.training import TrainConfig
from firststep.utils import available_cores

USABLE = 0.9  # of the free memory; the rest is left to other programs
ASSUMED = 4 * 2.0**30  # bytes, where the system does not tell; a run of its own always starts


@dataclass(frozen=True, eq=False)
class Allocation:
    """The cores, memory and GPU of a running job."""

    resources: ResourceEstimate
    device: str | None = None
    """The job's GPU, as CUDA_VISIBLE_DEVICES names it."""
    visible_device: str | None = None
    """The only GPU that the job's process should see; None if its configuration names one by number."""


class Capacity:
    """The free cores, memory and GPUs of this machine, and the allocations of running jobs."""

    def __init__(self, at_once: int, *, share_cores: bool = False) -> None:
        self.at_once, self.share_cores = at_once, share_cores
        self.cores, self.memory, self.devices = available_cores(), free_memory(), visible_devices()
        self.allocations: list[Allocation] = []

    def acquire(self, config: TrainConfig) -> Allocation | None:
        """Allocate resources for a run; return None if it has to wait. An idle machine takes any run."""
        need = estimate_resources(config)
        device, visible = self._free_device(config) if need.gpus else (None, None)
        if self.allocations and not (device if need.gpus else self._fits(need)):
            return None
        if len(self.allocations) >= self.at_once:
            return None
        allocation = Allocation(need, device, visible)
        self.allocations.append(allocation)
        return allocation

    def release(self, allocation: Allocation) -> None:
        """Free the resources of a finished run."""
        self.allocations.remove(allocation)

    def _fits(self, more: ResourceEstimate) -> bool:
        on_cpu = [each.resources for each in self.allocations if not each.resources.gpus]
        return (self.share_cores or sum(need.cpus for need in on_cpu) + more.cpus <= self.cores) and sum(
            need.memory_bytes for need in on_cpu
        ) + more.memory_bytes <= self.memory

    def _free_device(self, config: TrainConfig) -> tuple[str | None, str | None]:
        """Return the GPU of a run, and the only one that its process may see.

        A GPU takes one run. A configuration may name its GPU by number; otherwise any free one is used.
        """
        taken = {allocation.device for allocation in self.allocations}
        index = None if config.device == "auto" else torch.device(config.device).index
        if index is not None:
            named = self.devices[index] if index < len(self.devices) else None
            return (None if named in taken else named), None
        free = next((device for device in self.devices if device not in taken), None)
        return free, free


def visible_devices() -> list[str]:
    """Return the GPUs of this process, as CUDA_VISIBLE_DEVICES names them."""
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    count = torch.cuda.device_count()
    return named[:count] if named else [str(number) for number in range(count)]


def free_memory() -> int:
    """Return the bytes that new processes may take, within the limits of the system and the container."""
    return int(USABLE * min(_system_memory(), _container_memory()))


def _system_memory() -> float:
    try:  # Linux includes the file cache that it would give back; sysconf does not
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        facts = dict(line.split(":", 1) for line in lines)
        return 1024.0 * int(facts["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        if not hasattr(os, "sysconf"):  # Windows
            return ASSUMED
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _container_memory() -> float:
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        return limit - int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or one without a limit
        return float("inf")
