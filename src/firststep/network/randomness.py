"""Random numbers in a forward pass: noticed, and the same in all evaluations of a task if that is asked for.

A step is computed more than once: again on the way back, and once more for the Gram matrix. If a layer drew
other numbers each time, the meta-gradient would be that of no loss at all.
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
    """The seed of the task that is computed at the moment."""
    return _task_seed.get()


def draw_seed() -> int:
    """From torch's default generator: tasks differ, and ``torch.manual_seed`` repeats them."""
    return int(torch.randint(2**63 - 1, ()))


@contextmanager
def with_task_seed(seed: int | None) -> Iterator[None]:
    """Inside, networks with random numbers draw those of this seed in every evaluation."""
    token = _task_seed.set(seed)
    try:
        yield
    finally:
        _task_seed.reset(token)


@contextmanager
def drawing_from(seed: int, device: torch.device) -> Iterator[None]:
    """Torch's default generators start from a seed, and are as they were afterwards."""
    with preserved(device):
        torch.manual_seed(seed)
        yield


@contextmanager
def preserved(device: torch.device) -> Iterator[None]:
    """Torch's default generators are afterwards as they were."""
    if device.type == "cpu":
        with torch.random.fork_rng(devices=[]):
            yield
    else:
        with torch.random.fork_rng(devices=[device], device_type=device.type):
            yield


def generator_states(device: torch.device) -> list[Tensor]:
    """Of the default generators that a network on this device draws from."""
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(device))
    return states


def same_states(first: list[Tensor], second: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
