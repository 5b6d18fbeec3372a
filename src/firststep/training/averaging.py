"""Exponential moving average of weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


class WeightAverage:
    """An average of weights: average ← d · average + (1 - d) · weights, d = min(decay, (1 + t) / (10 + t)).

    t is the number of the update, from 0. The smaller decay at the start forgets the initial weights.
    """

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.weights = {name: value.detach().clone() for name, value in weights.items()}

    @torch.no_grad()
    def add(self, weights: Mapping[str, Tensor], update: int) -> None:
        decay = min(self.decay, (1 + update) / (10 + update))
        for name, average in self.weights.items():
            average.lerp_(weights[name], 1 - decay)

    @contextmanager
    def in_place_of(self, weights: Mapping[str, Tensor]) -> Iterator[None]:
        """Use the average in place of the weights inside the block; restore them bit for bit afterwards."""
        own = {name: value.detach().clone() for name, value in weights.items()}
        try:
            _copy(self.weights, weights)
            yield
        finally:
            _copy(own, weights)


@torch.no_grad()
def _copy(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    for name, value in target.items():
        value.copy_(source[name])
