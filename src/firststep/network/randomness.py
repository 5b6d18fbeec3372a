"""Random numbers in a forward pass: detect them, or draw the same ones in all evaluations of a task.

A step is computed more than once: again in the backward pass, and once more for the Gram matrix. If a layer
drew different numbers each time, the result would not be the gradient of any loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

RANDOMNESS = ("error", "same")

_task_seed: ContextVar[int | None] = ContextVar("firststep_seed", default=None)


def check_randomness(randomness: str) -> None:
    if randomness not in RANDOMNESS:
        raise ValueError(f"randomness must be 'error' or 'same', not {randomness!r}")


def task_seed() -> int | None:
    """Return the seed of the current task."""
    return _task_seed.get()


def draw_seed() -> int:
    """Draw a seed from torch's default generator; ``torch.manual_seed`` repeats it."""
    return int(torch.randint(2**63 - 1, ()))


@contextmanager
def with_task_seed(seed: int | None) -> Iterator[None]:
    """Make every evaluation of a random network inside draw its numbers from this seed."""
    token = _task_seed.set(seed)
    try:
        yield
    finally:
        _task_seed.reset(token)


@contextmanager
def drawing_from(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the default generators of the CPU and of a device inside the block, then restore them."""
    with preserved(device):
        # torch.manual_seed would also seed the other GPUs, which nothing restores.
        torch.default_generator.manual_seed(seed)
        if (module := _device_module(device)) is not None:
            with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
                module.manual_seed(seed)
        yield


@contextmanager
def preserved(device: torch.device) -> Iterator[None]:
    """Restore the default generators of the CPU and of a device after the block."""
    before = generator_states(device)
    try:
        yield
    finally:
        torch.set_rng_state(before[0])
        if (module := _device_module(device)) is not None:
            module.set_rng_state(before[1], *_which(device))


def generator_states(device: torch.device) -> list[Tensor]:
    """Return the states of the default generators that a network on this device uses."""
    states = [torch.get_rng_state()]
    if (module := _device_module(device)) is not None:
        states.append(module.get_rng_state(*_which(device)))
    return states


def _device_module(device: torch.device) -> Any:
    """Return torch's module of a device with a generator of its own; None for the CPU and ``meta``."""
    return None if device.type in ("cpu", "meta") else torch.get_device_module(device)


def _which(device: torch.device) -> tuple[torch.device, ...]:
    """Return the arguments that name a device to its module; there is one mps, which takes none."""
    return () if device.type == "mps" else (device,)


def same_states(first: list[Tensor], second: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
