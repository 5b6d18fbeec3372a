"""The memory that an autograd graph holds for its backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class Saved:
    """The saved storages; several views of one storage count once."""

    def __init__(self) -> None:
        self._storages: dict[int, int] = {}

    def note(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        self._storages[storage._cdata] = storage.nbytes()
        # Detached, because an operation that saves its own result would keep itself alive forever. Autograd
        # reattaches the graph.
        return tensor.detach()

    @property
    def bytes(self) -> int:
        return sum(self._storages.values())


@contextmanager
def counting_saved() -> Iterator[Saved]:
    """Count the bytes that graphs made inside the block save."""
    saved = Saved()
    with torch.autograd.graph.saved_tensors_hooks(saved.note, lambda tensor: tensor):
        yield saved
