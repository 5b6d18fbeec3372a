"""Float64 on every device: where a device has none, the n x n part runs on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

WITHOUT_FLOAT64 = {"mps"}
"""Types of devices that have no float64."""


def has_float64(device: torch.device) -> bool:
    """Return whether a device can hold float64 tensors.

    Examples:
        >>> from firststep.conditioning import has_float64
        >>> has_float64(torch.device("cpu")), has_float64(torch.device("mps"))
        (True, False)
    """
    return device.type not in WITHOUT_FLOAT64


def exact_device(device: torch.device) -> torch.device:
    """Return where float64 tensors of computations on ``device`` live: there, or on the CPU."""
    return device if has_float64(device) else torch.device("cpu")


def exact(tensor: Tensor) -> Tensor:
    """Return a tensor in float64, on the CPU if its device has none; differentiable.

    Everything that is computed from it stays there, and gradients flow back to the device.
    """
    return tensor.double() if has_float64(tensor.device) else tensor.cpu().double()
