"""Which devices have float64, in which Gram matrices and their spectra are computed."""

from __future__ import annotations

import torch

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
