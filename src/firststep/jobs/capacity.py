"""How many jobs this machine takes at once: cores, memory and GPUs, lent and given back."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from firststep.jobs.needs import Needs, needs
from firststep.training import TrainConfig

SPARE = 0.9  # of the memory that is free: the rest is for everybody else


@dataclass(frozen=True, eq=False)
class Share:
    """What a running job has of the machine."""

    needs: Needs
    device: str | None = None
    """Its GPU, as CUDA_VISIBLE_DEVICES names it."""
    sees: str | None = None
    """The only GPU that it is to see; None where its configuration names one by number."""


class Capacity:
    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self.cores, self.memory, self.devices = cores(), free_memory(), visible_devices()
        self.lent: list[Share] = []

    def lend(self, config: TrainConfig) -> Share | None:
        """A share for a run; None if it has to wait. What asks alone gets one, whatever the estimate says."""
        need = needs(config)
        device, sees = self._free_device(config) if need.gpus else (None, None)
        if self.lent and not (device if need.gpus else self._has_room(need)):
            return None
        if len(self.lent) >= self.at_once:
            return None
        share = Share(need, device, sees)
        self.lent.append(share)
        return share

    def take_back(self, share: Share) -> None:
        self.lent.remove(share)

    def _has_room(self, more: Needs) -> bool:
        on_cpu = [share.needs for share in self.lent if not share.needs.gpus]
        return (
            sum(need.cpus for need in on_cpu) + more.cpus <= self.cores
            and sum(need.memory_bytes for need in on_cpu) + more.memory_bytes <= self.memory
        )

    def _free_device(self, config: TrainConfig) -> tuple[str | None, str | None]:
        """One run each: the GPU that the configuration names by number, or any that is free."""
        taken = {share.device for share in self.lent}
        index = None if config.device == "auto" else torch.device(config.device).index
        if index is not None:
            named = self.devices[index] if index < len(self.devices) else None
            return (None if named in taken else named), None
        free = next((device for device in self.devices if device not in taken), None)
        return free, free


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def visible_devices() -> list[str]:
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    count = torch.cuda.device_count()
    return named[:count] if named else [str(number) for number in range(count)]


def free_memory() -> int:
    """Bytes that new processes may take: what the system has left, and what a container allows."""
    return int(SPARE * min(_system_memory(), _container_memory()))


def _system_memory() -> float:
    try:  # Linux counts what it would give back from its file cache; sysconf does not
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        facts = dict(line.split(":", 1) for line in lines)
        return 1024.0 * int(facts["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _container_memory() -> float:
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        return limit - int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or one without a limit
        return float("inf")
