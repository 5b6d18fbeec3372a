"""``F.embedding_bag`` from operations that are differentiable any number of times."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the rows of ``weight`` per bag [bags, d]; arguments as in torch.

    Gradients are dense. Torch's own function runs if the gradient is not that of the result
    (``scale_grad_by_freq``) or if the weight is changed (``max_norm``).
    """
    if max_norm is not None or scale_grad_by_freq:
        return F.embedding_bag(
            input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse,
            per_sample_weights, include_last_offset, padding_idx,
        )  # fmt: skip
    entries = torch.arange(input.numel(), device=input.device)
    if input.dim() == 2:
        count = len(input)
        bag = entries // max(1, input.shape[1])
    else:
        assert offsets is not None  # torch requires it for 1-D input
        count = len(offsets) - include_last_offset
        bag = torch.searchsorted(offsets[:count].contiguous(), entries, right=True) - 1
    rows = input.reshape(-1)
    vectors = F.embedding(rows, weight)
    counts = torch.ones_like(rows, dtype=torch.bool)
    if padding_idx is not None:
        counts = rows != padding_idx % len(weight)
    if mode == "max":
        return _largest(vectors, bag, counts, count)
    shares = counts.to(weight.dtype)
    if per_sample_weights is not None:
        shares = shares * per_sample_weights.reshape(-1)
    total = vectors.new_zeros(count, vectors.shape[1]).index_add(0, bag, vectors * shares.unsqueeze(1))
    if mode == "sum":
        return total
    sizes = vectors.new_zeros(count).index_add(0, bag, counts.to(weight.dtype))
    return total / sizes.clamp_min(1).unsqueeze(1)


def _largest(vectors: Tensor, bag: Tensor, counts: Tensor, count: int) -> Tensor:
    """Return the largest entry per bag and column, the first of equal ones; 0 for an empty bag."""
    n, width = vectors.shape
    where = bag.unsqueeze(1).expand(n, width)
    with torch.no_grad():
        values = vectors.masked_fill(~counts.unsqueeze(1), -torch.inf)
        best = values.new_full((count, width), -torch.inf).scatter_reduce(0, where, values, "amax")
        number = torch.arange(n, device=bag.device).unsqueeze(1).expand(n, width)
        candidates = torch.where((values == best[bag]) & counts.unsqueeze(1), number, n)
        first = number.new_full((count, width), n).scatter_reduce(0, where, candidates, "amin")
    return torch.cat([vectors, vectors.new_zeros(1, width)]).gather(0, first)
