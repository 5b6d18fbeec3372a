"""The smaller Gram matrix JᵀJ, for residuals that outnumber the parameters: the same non-zero eigenvalues.

In J Jᵀ the zeros of surplus samples are found by its normalised rows and left out: see :mod:`spectrum`. Rows
of JᵀJ belong to parameters. One that has no effect, such as a weight of a unit that is never active, must be
left out likewise, but its row is zero and would count as a vanished residual. So the parameters are rotated
by an orthogonal matrix V first: no row of (J V)ᵀ (J V) belongs to one parameter, and the eigenvalues stay.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from firststep.conditioning.precision import in_float64


def rotation(size: int, device: torch.device) -> Tensor:
    """Return an orthogonal matrix without small entries in its first row: the discrete cosine transform."""
    places = torch.arange(size, dtype=torch.float64, device=device)
    waves = torch.cos(math.pi / size * places[:, None] * (places + 0.5)) * math.sqrt(2 / size)
    first = torch.full((1, size), 1 / math.sqrt(size), dtype=torch.float64, device=device)
    return torch.cat([first, waves[1:]]).mT


def smaller_gram(jacobian: Tensor) -> Tensor:
    """Return (J V)ᵀ (J V) for J [..., n, p], float64 [..., p, p]."""
    exact = in_float64(jacobian)
    rotated = exact @ rotation(exact.shape[-1], exact.device)
    return rotated.mT @ rotated
