"""Least-squares residuals of any non-negative per-sample loss."""

from __future__ import annotations

import torch
from torch import Tensor

from firststep.conditioning._checks import require_finite, require_tensor


def residuals(losses: Tensor, *, check_finite: bool = True) -> Tensor:
    """r_i = sqrt(ℓ_i / n), so that Σ r_i² is the mean loss; float64 [..., n].

    The square root's derivative is infinite at 0. A sample without loss has nothing left to pull, so its
    gradient is defined as 0 there. For softmax cross-entropy prefer :func:`cross_entropy_residuals`, which
    knows the true limit.

    Args:
        losses: non-negative, one per sample, [..., n].
        check_finite: refuse NaN, infinite and negative losses (reads the values).
    """
    require_tensor("losses", losses, 1, "[..., n]")
    if check_finite:
        require_finite("losses", losses)
        if bool((losses < 0).any()):
            raise ValueError("losses must not be negative: a residual is the root of a loss")
    mean_share = losses.double() / losses.shape[-1]
    zero = mean_share == 0
    return torch.where(zero, 0.0, mean_share.masked_fill(zero, 1.0).sqrt())
