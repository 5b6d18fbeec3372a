"""Eigenvalues of a Gram matrix, and figures of them: variance of the logarithms, condition number.

An eigenvalue under ``rtol`` times the largest cannot be told from rounding noise. There are two reasons for
one, and they are told apart by the Gram matrix of the *normalised* rows of J, C_ij = G_ij / sqrt(G_ii G_jj),
which does not change with the size of the residuals:

- the samples repeat each other, or there are more of them than parameters. Then C lacks that rank too. So
  many of the smallest eigenvalues are zeros of the task, not of the model, and enter no figure (the paper
  means the non-zero eigenvalues);
- the residuals of some samples have all but vanished, as those of a class that the classifier favours. Then
  the eigenvalue counts, at the border ``rtol * largest``: dropping it would call a collapsed model well
  conditioned the moment it gets worse. Its value stands still from there on, and its gradient remains that of
  its logarithm, which the identity Σ log λ(G) = Σ log λ(C) + Σ log G_ii gives for all of them together: so a
  collapsed model is still pulled out of it.

Only ``eigvalsh`` is differentiated: the gradient of an eigenvalue is v vᵀ, free of the 1/(λ_i - λ_j) that
makes eigenvectors' gradients explode.
"""

from __future__ import annotations

import torch
from torch import Tensor

from firststep.conditioning._checks import holds, require_finite, require_tensor

# How far rounding can take the entries and eigenvalues of a Gram matrix, relative to its largest entry.
_TOLERANCE = 1e-9
_COARSE_TOLERANCE = 1e-3  # of a matrix that was computed in less than double precision
# Reciprocals of eigenvalues below this would overflow on the way back.
_SMALLEST = torch.finfo(torch.float64).tiny / torch.finfo(torch.float64).eps


def eigenvalues(gram: Tensor, *, check_finite: bool = True) -> Tensor:
    """All eigenvalues of a Gram matrix [..., n, n], ascending, float64 [..., n].

    A matrix that is not one (complex, not symmetric, with a clearly negative eigenvalue) is refused. With
    ``check_finite=False`` its values are not looked at, and a matrix with NaN has NaN eigenvalues.

    Examples:
        >>> fs.eigenvalues(torch.diag(torch.tensor([4.0, 1.0, 100.0])))
        tensor([  1.,   4., 100.], dtype=torch.float64)
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
        if not holds(((exact - exact.mT).detach().abs().amax((-2, -1)) <= tolerance * size).all()):
            raise ValueError("gram must be symmetric")
        values = torch.linalg.eigvalsh(exact)
        if not holds((values[..., 0].detach() >= -tolerance * size * gram.shape[-1]).all()):
            raise ValueError("gram must be positive semi-definite; it has a negative eigenvalue")
        return values
    gram = gram.double()
    finite = torch.isfinite(gram).flatten(-2).all(-1)
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    safe = torch.where(finite[..., None, None], gram, identity)  # LAPACK would raise on NaN
    return torch.where(finite[..., None], torch.linalg.eigvalsh(safe), torch.nan)


def _floor(values: Tensor, rtol: float | None) -> Tensor:
    """The border of noise, [..., 1]."""
    if rtol is None:
        rtol = values.shape[-1] * torch.finfo(torch.float64).eps
    if not 0 <= rtol < 1:
        raise ValueError(f"rtol must be at least 0 and below 1, not {rtol}")
    return (rtol * values[..., -1:]).clamp_min(_SMALLEST)


def _informative(values: Tensor, rtol: float | None) -> Tensor:
    """Which eigenvalues stand above the noise; NaN counts as informative, so that it shows."""
    return ~(values <= _floor(values, rtol))


def _normalised(gram: Tensor) -> tuple[Tensor, Tensor]:
    """C, with the scales as constants, and which of its rows have a size at all [..., n].

    A row without size has nothing in common with the others.
    """
    gram = gram.double()
    sizes = gram.detach().diagonal(dim1=-2, dim2=-1)
    sized = ~(sizes <= _SMALLEST)
    inverse = sizes.masked_fill(~sized, 1.0).rsqrt().masked_fill(~sized, 0.0)
    return gram * inverse.unsqueeze(-1) * inverse.unsqueeze(-2) + torch.diag_embed((~sized).double()), sized


def _logarithms(gram: Tensor, rtol: float | None, check_finite: bool) -> tuple[Tensor, Tensor]:
    """log10 of the eigenvalues, ascending, and which of them count, [..., n]; 0 where they do not."""
    values = eigenvalues(gram, check_finite=check_finite)
    above = _informative(values, rtol)
    logs = torch.log10(values.masked_fill(~above, 1.0))  # log10(1) = 0: no gradient
    normalised, sized = _normalised(gram)
    of_normalised = eigenvalues(normalised, check_finite=False)
    independent = _informative(of_normalised, rtol)
    rank = independent.sum(-1, keepdim=True)
    number = torch.arange(values.shape[-1], device=values.device)
    vanished = ~above & (number >= values.shape[-1] - rank)

    at_floor = torch.log10(_floor(values, rtol))
    # Σ log λ of those that have vanished, up to a constant: only its gradient is used.
    volume = torch.log10(of_normalised.masked_fill(~independent, 1.0)).sum(-1, keepdim=True)
    mean = (volume - logs.sum(-1, keepdim=True)) / vanished.sum(-1, keepdim=True).clamp_min(1)
    known = independent.all(-1, keepdim=True) & sized.all(-1, keepdim=True)
    pulled = torch.where(known, at_floor.detach() + (mean - mean.detach()), at_floor)
    return torch.where(vanished, pulled, logs), above | vanished


def numerical_rank(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """How many eigenvalues stand above the noise, [...].

    Less than n where samples repeat each other, and where the residuals of some have all but vanished.

    Examples:
        >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> fs.numerical_rank(rows @ rows.T)
        tensor(2)
    """
    return _informative(eigenvalues(gram, check_finite=check_finite), rtol).sum(-1)


def log_eigenvalue_variance(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """The paper's conditioning loss: the (population) variance of log10 of the eigenvalues, [...].

    It is 0 exactly when all eigenvalues are equal and does not change when the matrix is scaled. A matrix
    with fewer than two eigenvalues that count has variance 0 and no gradient.

    The population variance divides by their number n; the sample variance, which ``torch.var`` computes
    unless told otherwise, by n - 1. The two differ by the constant factor n / (n - 1), 1.04 for 25 samples
    and 1.25 for 5: a matter of γ. The paper writes Var and does not say which.

    Args:
        gram: symmetric positive semi-definite, [..., n, n].
        rtol: the border of noise, relative to the largest eigenvalue; default n times the float64 epsilon.
        check_finite: refuse NaN and infinities (reads the values, so a GPU waits).

    Examples:
        >>> fs.log_eigenvalue_variance(torch.diag(torch.tensor([1.0, 100.0])))
        tensor(1., dtype=torch.float64)
        >>> fs.log_eigenvalue_variance(torch.eye(5))
        tensor(0., dtype=torch.float64)
    """
    logs, keep = _logarithms(gram, rtol, check_finite)
    count = keep.sum(-1, keepdim=True).clamp_min(1)
    deviation = (logs - logs.sum(-1, keepdim=True) / count).masked_fill(~keep, 0.0)
    return (deviation.square().sum(-1, keepdim=True) / count).squeeze(-1)


def log_condition_number(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """log10(λ_max / λ_min) over the eigenvalues that count, [...]: the paper's ablation of its loss.

    Examples:
        >>> fs.log_condition_number(torch.diag(torch.tensor([4.0, 1.0, 100.0])))
        tensor(2., dtype=torch.float64)
    """
    logs, keep = _logarithms(gram, rtol, check_finite)
    largest = logs[..., -1]
    # Ascending order: the first that is kept is the smallest. Nothing kept: 0.
    first = keep.to(torch.int8).argmax(-1, keepdim=True)
    return largest - logs.gather(-1, first).squeeze(-1)


def condition_number(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """λ_max / λ_min over the eigenvalues that count, [...]; 1 for a matrix of zeros, at most 1 / rtol.

    A support set with repeated images reports the conditioning of what it does determine; samples whose
    residuals have vanished count as what rounding leaves of them. :func:`numerical_rank` tells how many
    eigenvalues stand above the noise, and belongs beside it.

    Examples:
        >>> fs.condition_number(torch.diag(torch.tensor([4.0, 1.0, 100.0])))
        tensor(100., dtype=torch.float64)
    """
    return torch.pow(10.0, log_condition_number(gram, rtol, check_finite=check_finite))
