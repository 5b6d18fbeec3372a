"""What tests of devices share: a small network and task, and a comparison of a device with the CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from firststep import MetaLearner, Task, build_backbone
from networks import generator
from second_device import SECOND, synchronisations

WAYS = 3
ALLOWED: dict[str, int] = {}
"""Synchronisation → how often a meta-gradient may make it: never."""
CPU = torch.device("cpu")
OTHERS = [
    SECOND,
    *(torch.device("cuda") for _ in range(torch.cuda.is_available())),
    *(torch.device("mps") for _ in range(torch.backends.mps.is_available())),
]
"""The devices that are compared with the CPU: the one in Python, and those of this machine."""

Around = Callable[[], AbstractContextManager[None]]


def images_task(size: int, channels: int = 1) -> Task:
    source = generator(4)
    support, query = (torch.randn(WAYS * n, channels, size, size, generator=source) for n in (2, 3))
    return Task(support, torch.arange(WAYS).repeat(2), query, torch.arange(WAYS).repeat(3))


def conv() -> nn.Module:
    return build_backbone("conv4", ways=WAYS, image_size=16, channels=1, filters=4, generator=generator(1))


@contextmanager
def only_allowed() -> Iterator[None]:
    """Fail if a meta-gradient waits for the device where ``ALLOWED`` does not say so."""
    with synchronisations() as seen:
        yield
    for what in set(seen):
        assert seen.count(what) <= ALLOWED.get(what, 0), seen


def meta_gradient(
    network: nn.Module, task: Task, device: torch.device, around: Around = only_allowed, **options: Any
) -> list[Tensor]:
    """Return the outer loss and its gradients, computed on a device."""
    meta = MetaLearner(copy.deepcopy(network).to(device), steps=2, generator=generator(2), **options)
    meta.to(device)
    with around():
        loss = meta([task.to(device)])
        loss.backward()
    grads = [value.grad for value in meta.parameters() if value.grad is not None]
    assert all(grad.device.type == device.type for grad in grads)
    return [part.detach().cpu() for part in (loss, *grads)]


def same_as_on_the_cpu(network: nn.Module, task: Task, around: Around = only_allowed, **options: Any) -> None:
    expected = meta_gradient(network, task, CPU, **options)
    for device in OTHERS:
        found = meta_gradient(network, task, device, around, **options)
        assert len(found) == len(expected) > 1
        compare(found, expected)


def compare(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(
            one, other, rtol=1e-4, atol=1e-5
        )  # sums of gradients may have another order
