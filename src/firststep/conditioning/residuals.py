"""Losses as least-squares residuals; softmax cross-entropy is exact where the naive formula is 0/0.

With the margin m_i = log Σ_{c≠y} exp(z_ic) - z_iy of sample i,

    ℓ_i = log(1 + exp(m_i))                         the cross-entropy
    e_i = sigmoid(m_i) (q_i - onehot(y_i))          its gradient in the logits, softmax(z_i) - onehot(y_i)

where q_i is the softmax over the wrong classes only. A well-fit sample has m_i → -∞. Then ℓ_i and e_i both
vanish like exp(m_i), and e_i / sqrt(ℓ_i) → exp(m_i / 2) (q_i - onehot(y_i)) stays accurate although both
underflow. Everything here runs in float64.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from firststep.conditioning._checks import holds, require_classification, require_finite, require_tensor
from firststep.conditioning.precision import in_float64

# Below this margin exp(m) < 2^-57, so the first-order limits are exact in float64.
WELL_FIT = -40.0


def residuals(losses: Tensor, *, check_finite: bool = True) -> Tensor:
    """Return r_i = sqrt(ℓ_i / n), so that Σ r_i² is the mean loss; float64 [..., n].

    The square root's derivative is infinite at 0, so the gradient of a sample with loss 0 is defined as 0.
    For softmax cross-entropy prefer :func:`cross_entropy_residuals`, which uses the true limit.

    Args:
        losses: non-negative, one per sample, [..., n].
        check_finite: refuse NaN, infinite and negative losses (reads the values).

    Examples:
        >>> fs.residuals(torch.tensor([1.0, 4.0, 9.0, 16.0]))
        tensor([0.5000, 1.0000, 1.5000, 2.0000], dtype=torch.float64)
    """
    require_tensor("losses", losses, 1, "[..., n]")
    if losses.is_complex():
        raise ValueError(f"losses must be real numbers, not {losses.dtype}")
    if check_finite:
        require_finite("losses", losses)
        if not holds((losses >= 0).all()):
            raise ValueError("losses must not be negative: a residual is the root of a loss")
    mean_share = in_float64(losses) / losses.shape[-1]
    zero = mean_share == 0
    return torch.where(zero, 0.0, mean_share.masked_fill(zero, 1.0).sqrt())


def margin(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the margins m [..., n] and a mask of the right class [..., n, classes]."""
    logits = in_float64(logits)
    labels = labels.to(logits.device)
    # F.one_hot reads the labels' values, which makes a GPU wait and a tracer fail.
    right = labels.unsqueeze(-1) == torch.arange(logits.shape[-1], device=labels.device)
    wrong = logits.masked_fill(right, -math.inf)
    return wrong.logsumexp(-1) - logits.gather(-1, labels.long().unsqueeze(-1)).squeeze(-1), right


def root_loss(margin: Tensor) -> Tensor:
    """Return sqrt(ℓ) of a margin, with the true, finite derivatives also where ℓ underflows."""
    well_fit = margin < WELL_FIT
    ordinary = margin.masked_fill(well_fit, 0.0)  # keeps the unused branch, and its gradient, finite
    limit = torch.exp(margin.clamp(max=WELL_FIT) / 2)
    return torch.where(well_fit, limit, torch.logaddexp(ordinary, torch.zeros_like(ordinary)).sqrt())


def scaled_errors(logits: Tensor, labels: Tensor) -> Tensor:
    """Return e_i / sqrt(ℓ_i), float64 [..., n, classes].

    Examples:
        >>> from firststep.conditioning import scaled_errors
        >>> scaled_errors(torch.zeros(2, 5), torch.tensor([0, 3])).sum(-1).abs().max().item() < 1e-9
        True
    """
    m, right = margin(logits, labels)
    well_fit = m < WELL_FIT
    ordinary = m.masked_fill(well_fit, 0.0)
    amplitude = torch.where(
        well_fit, torch.exp(m.clamp(max=WELL_FIT) / 2), torch.sigmoid(ordinary) / root_loss(ordinary)
    )
    wrong_softmax = in_float64(logits).masked_fill(right, -math.inf).softmax(-1)
    return amplitude.unsqueeze(-1) * (wrong_softmax - right.double())


def cross_entropy_residuals(logits: Tensor, labels: Tensor, *, check_finite: bool = True) -> Tensor:
    """Return r_i = sqrt(ℓ_i / n) of the softmax cross-entropy, float64 [..., n].

    The squares sum to the mean cross-entropy. Use it for :func:`jacobian_gram`. Unlike
    ``residuals(cross_entropy(...))`` it has the right gradient for samples whose loss underflows.

    Args:
        logits: [..., n, classes].
        labels: integers [..., n].
        check_finite: refuse NaN, infinite logits and labels out of range. Reading the values makes a GPU
            wait. Nothing is refused inside ``torch.vmap``, where values cannot be read.

    Examples:
        >>> r = fs.cross_entropy_residuals(torch.zeros(4, 5), torch.tensor([0, 1, 2, 3]))
        >>> round(r.square().sum().item(), 4)
        1.6094
    """
    require_classification(logits, labels, check_finite)
    return root_loss(margin(logits, labels)[0]) / math.sqrt(logits.shape[-2])
