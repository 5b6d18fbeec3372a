"""Losses of numbers. Each is the sum over the entries of a sample's output, [n, ...] → [n]."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.losses.loss import register_loss
from firststep.losses.targets import require_same_shape


@register_loss(kind="regression", squared=True, non_negative=True)
def squared_error(output: Tensor, target: Tensor) -> Tensor:
    """‖output - target‖² of each sample; ``F.mse_loss`` where a sample has one output.

    Examples:
        >>> fs.squared_error(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 0.0]]))
        tensor([5.])
    """
    z, y = require_same_shape("squared_error", output, target)
    return _summed((z - y).square())


@register_loss(kind="regression", non_negative=True)
def absolute_error(output: Tensor, target: Tensor) -> Tensor:
    """Σ |output - target| of each sample.

    Examples:
        >>> fs.absolute_error(torch.tensor([[1.0, -2.0]]), torch.tensor([[0.0, 0.0]]))
        tensor([3.])
    """
    z, y = require_same_shape("absolute_error", output, target)
    return _summed((z - y).abs())


@register_loss(kind="regression", non_negative=True)
def huber(output: Tensor, target: Tensor, *, delta: float = 1.0) -> Tensor:
    """Σ of ½ e² where |e| ≤ ``delta``, and δ (|e| - ½ δ) beyond.

    Examples:
        >>> fs.huber(torch.tensor([[1.0], [3.0]]), torch.tensor([[0.0], [0.0]]))
        tensor([0.5000, 2.5000])
    """
    z, y = require_same_shape("huber", output, target)
    return _summed(F.huber_loss(z, y.to(z.dtype), reduction="none", delta=delta))


@register_loss(kind="regression", non_negative=True)
def poisson(output: Tensor, target: Tensor) -> Tensor:
    """Half the Poisson deviance of counts y and log-rates z: Σ exp(z) - y z - y + y log y, at least 0.

    It differs from the negative log-likelihood by a constant of y.

    Examples:
        >>> fs.poisson(torch.tensor([[0.0]]), torch.tensor([[1.0]]))
        tensor([0.])
    """
    z, y = require_same_shape("poisson", output, target)
    y = y.to(z.dtype)
    # The least loss, at exp(z) = y, is 0 up to rounding, which must not make it negative.
    return _summed((z.exp() - y * z - y + torch.xlogy(y, y)).clamp_min(0.0))


def _summed(losses: Tensor) -> Tensor:
    return losses.reshape(len(losses), -1).sum(1)
