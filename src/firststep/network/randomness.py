"""Random numbers in a forward pass: detect them, or draw the same ones in all evaluations of a task.

A step is computed more than once: again in the backward pass, and once more for the Gram matrix. If a layer
drew different numbers each time, the result would not be the gradient of any loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
    """Seed torch's default generators inside the block, and restore them afterwards."""
    with preserved(device):
        torch.manual_seed(seed)
        yield


@contextmanager
def preserved(device: torch.device) -> Iterator[None]:
    """Restore torch's default generators after the block."""
    if device.type == "cpu":
        with torch.random.fork_rng(devices=[]):
            yield
    else:
        with torch.random.fork_rng(devices=[device], device_type=device.type):
            yield


def generator_states(device: torch.device) -> list[Tensor]:
    """Return the states of the default generators that a network on this device uses."""
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(device))
    return states


def same_states(first: list[Tensor], second: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
