"""float64 on every device: Gram matrices, spectra and reports need it, and Apple's mps has none.

All our computations in float64 come here for their tensors. A device without float64 hands these few numbers
to the CPU; gradients flow back. All else stays on the device.
"""

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


def float64_device(device: torch.device) -> torch.device:
    """Return where float64 tensors of a device live: on it, or on the CPU."""
    return device if has_float64(device) else torch.device("cpu")


def in_float64(values: Tensor) -> Tensor:
    """Return the values in float64, differentiably: on their device, or on the CPU if that has no float64.

    Examples:
        >>> from firststep.conditioning import in_float64
        >>> in_float64(torch.ones(2)).dtype
        torch.float64
    """
    return values.to(float64_device(values.device)).double()


def back_to(values: Tensor, like: Tensor) -> Tensor:
    """Return the values in dtype and on device of ``like``: the way back from :func:`in_float64`."""
    return values.to(like.dtype).to(like.device)
