"""Eigenvalues of a Gram matrix, and figures of them: variance of the logarithms, condition number.

An eigenvalue under ``rtol`` times the largest is rounding noise, not information: it enters no figure and
gets no gradient (the paper means the non-zero eigenvalues). Only ``eigvalsh`` is differentiated: the
gradient of an eigenvalue is v vᵀ, free of the 1/(λ_i - λ_j) that makes eigenvectors' gradients explode.
"""

from __future__ import annotations

import torch
from torch import Tensor

from firststep.conditioning._checks import require_finite, require_tensor

# Reciprocals of eigenvalues below this would overflow on the way back.
# How far rounding can take the entries and eigenvalues of a Gram matrix, relative to its largest entry.
_TOLERANCE = 1e-9
_COARSE_TOLERANCE = 1e-3  # of a matrix that was computed in less than double precision
_SMALLEST = torch.finfo(torch.float64).tiny / torch.finfo(torch.float64).eps


def eigenvalues(gram: Tensor, *, check_finite: bool = True) -> Tensor:
    """All eigenvalues of a Gram matrix [..., n, n], ascending, float64 [..., n].

    A matrix that is not one (complex, not symmetric, with a clearly negative eigenvalue) is refused. With
    ``check_finite=False`` its values are not looked at, and a matrix with NaN has NaN eigenvalues.
    """
    require_tensor("gram", gram, 2, "[..., n, n]")
    if gram.shape[-1] != gram.shape[-2] or gram.shape[-1] == 0:
        raise ValueError(f"gram must be square and not empty, [..., n, n], not {tuple(gram.shape)}")
    if gram.is_complex():
        raise ValueError(f"gram must be real, not {gram.dtype}")
    if check_finite:
        require_finite("gram", gram)
        exact = gram.double()
        tolerance = _TOLERANCE if gram.dtype == torch.float64 else _COARSE_TOLERANCE
        size = exact.detach().abs().amax((-2, -1))
        if bool(((exact - exact.mT).detach().abs().amax((-2, -1)) > tolerance * size).any()):
            raise ValueError("gram must be symmetric")
        values = torch.linalg.eigvalsh(exact)
        if bool((values[..., 0].detach() < -tolerance * size * gram.shape[-1]).any()):
            raise ValueError("gram must be positive semi-definite; it has a negative eigenvalue")
        return values
    gram = gram.double()
    finite = torch.isfinite(gram).flatten(-2).all(-1)
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    safe = torch.where(finite[..., None, None], gram, identity)  # LAPACK would raise on NaN
    return torch.where(finite[..., None], torch.linalg.eigvalsh(safe), torch.nan)


def _informative(values: Tensor, rtol: float | None) -> Tensor:
    """Which eigenvalues stand above the noise; NaN counts as informative, so that it shows."""
    if rtol is None:
        rtol = values.shape[-1] * torch.finfo(torch.float64).eps
    floor = (rtol * values[..., -1:]).clamp_min(_SMALLEST)
    return ~(values <= floor)


def numerical_rank(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """How many eigenvalues stand above the noise, [...]; less than n where samples repeat each other."""
    return _informative(eigenvalues(gram, check_finite=check_finite), rtol).sum(-1)


def log_eigenvalue_variance(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """The paper's conditioning loss: the (population) variance of log10 of the eigenvalues, [...].

    It is 0 exactly when all eigenvalues are equal and does not change when the matrix is scaled. A matrix
    with fewer than two eigenvalues above the noise has variance 0 and no gradient.

    Args:
        gram: symmetric positive semi-definite, [..., n, n].
        rtol: eigenvalues under ``rtol * largest`` are noise; default n times the float64 epsilon.
        check_finite: refuse NaN and infinities (reads the values, so a GPU waits).
    """
    values = eigenvalues(gram, check_finite=check_finite)
    keep = _informative(values, rtol)
    logs = torch.log10(values.masked_fill(~keep, 1.0))  # log10(1) = 0: left out of the sums, no gradient
    count = keep.sum(-1, keepdim=True).clamp_min(1)
    deviation = (logs - logs.sum(-1, keepdim=True) / count).masked_fill(~keep, 0.0)
    return (deviation.square().sum(-1, keepdim=True) / count).squeeze(-1)


def log_condition_number(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """log10(λ_max / λ_min) over the eigenvalues above the noise, [...]: the paper's ablation of its loss."""
    values = eigenvalues(gram, check_finite=check_finite)
    keep = _informative(values, rtol)
    logs = torch.log10(values.masked_fill(~keep, 1.0))
    largest = logs[..., -1]
    # Ascending order: the first that is kept is the smallest. Nothing kept: 0.
    first = keep.to(torch.int8).argmax(-1, keepdim=True)
    return largest - logs.gather(-1, first).squeeze(-1)


def condition_number(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """λ_max / λ_min over the eigenvalues above the noise, [...]; 1 for a matrix of zeros.

    A matrix that is singular to rounding, as from a support set with repeated images, reports the
    conditioning of what it does determine; :func:`numerical_rank` tells how much that is.
    """
    return torch.pow(10.0, log_condition_number(gram, rtol, check_finite=check_finite))
