"""Argument checks of the public functions: a ValueError names the argument and the reason."""

from __future__ import annotations

import torch
from torch import Tensor


def require_tensor(name: str, value: object, min_dims: int, shape: str) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} must be a tensor of shape {shape}, not {type(value).__name__}")
    if value.dim() < min_dims:
        raise ValueError(f"{name} must have shape {shape}, not {tuple(value.shape)}")


def require_finite(name: str, value: Tensor) -> None:
    """Refuse NaN and infinities. Reading the values waits for the device."""
    if not holds(torch.isfinite(value).all()):
        bad = "NaN" if holds(torch.isnan(value).any()) else "infinite values"
        raise ValueError(f"{name} contains {bad}")


def require_classification(logits: Tensor, labels: Tensor, check_finite: bool) -> None:
    """Refuse all but logits [..., n, classes] and integer labels [..., n] that index them."""
    require_tensor("logits", logits, 2, "[..., n, classes]")
    require_tensor("labels", labels, 1, "[..., n]")
    if labels.shape != logits.shape[:-1]:
        raise ValueError(
            f"labels must have the shape of logits without the class dimension, {tuple(logits.shape[:-1])}, "
            f"not {tuple(labels.shape)}"
        )
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise ValueError(f"labels must be integers, not {labels.dtype}")
    classes = logits.shape[-1]
    if classes < 2:
        raise ValueError(f"logits must have at least two classes, not {classes}")
    if logits.shape[-2] < 1:
        raise ValueError("logits must have at least one sample")
    if check_finite:
        require_finite("logits", logits)
        if not holds(((labels >= 0) & (labels < classes)).all()):
            raise ValueError(f"labels must lie in 0..{classes - 1}, the classes of logits")


def holds(condition: Tensor) -> bool:
    """Return the condition's value; True inside ``torch.vmap``, where values cannot be read."""
    try:
        return bool(condition)
    except RuntimeError as error:
        if "vmap" in str(error):
            return True
        raise
