"""How much memory an autograd graph holds for its backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class Saved:
    """The storages that were saved; views of one count once."""

    def __init__(self) -> None:
        self._storages: dict[int, int] = {}

    def note(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        self._storages[storage._cdata] = storage.nbytes()
        # Not the tensor itself: an operation that saves its own result would hold itself for ever. Autograd
        # puts the graph back on what it finds here.
        return tensor.detach()

    @property
    def bytes(self) -> int:
        return sum(self._storages.values())


@contextmanager
def counting_saved() -> Iterator[Saved]:
    """Counts what graphs save that are made inside."""
    saved = Saved()
    with torch.autograd.graph.saved_tensors_hooks(saved.note, lambda tensor: tensor):
        yield saved
