"""A few-shot task as tensors."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Task(NamedTuple):
    """A support set to adapt on and a query set to be judged by; labels are 0..ways-1."""

    support_x: Tensor
    support_y: Tensor
    query_x: Tensor
    query_y: Tensor

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Task:
        """The same task on another device, or with images of another floating-point type."""
        return Task(
            self.support_x.to(device=device, dtype=dtype),
            self.support_y.to(device=device),
            self.query_x.to(device=device, dtype=dtype),
            self.query_y.to(device=device),
        )
