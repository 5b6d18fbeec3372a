"""Eigenvalues of a Gram matrix and their statistics: variance of the logarithms, condition number.

An eigenvalue below the noise floor, ``rtol`` times the largest, cannot be told from rounding noise. It has
one of two causes. The Gram matrix of the *normalised* rows of J, C_ij = G_ij / sqrt(G_ii G_jj), tells them
apart, because it does not depend on the size of the residuals:

- Samples repeat each other, or outnumber the parameters. Then C has the same lower rank. These zeros belong
  to the task, not to the model, and are left out of all statistics. (The paper means the non-zero
  eigenvalues.)
- The residuals of some samples have almost vanished, such as those of a class that the classifier favours.
  Then the eigenvalue counts with the value of the noise floor. Dropping it would call a collapsed model well
  conditioned just when it gets worse. The value is constant below the floor, but its gradient is still that
  of its logarithm, so the loss can pull a collapsed model back. The identity
  Σ log λ(G) = Σ log λ(C) + Σ log G_ii gives the sum of these gradients.

Only ``eigvalsh`` is differentiated: the gradient of an eigenvalue is v vᵀ, without the factors 1/(λ_i - λ_j)
that make gradients of eigenvectors explode.
"""

from __future__ import annotations

import torch
from torch import Tensor

from firststep.conditioning._checks import holds, require_finite, require_tensor
from firststep.conditioning.precision import in_float64
from firststep.conditioning.registry import conditioning_loss_named

# Rounding error of the entries and eigenvalues of a Gram matrix, relative to its largest entry.
_TOLERANCE = 1e-9
_COARSE_TOLERANCE = 1e-3  # for matrices in lower precision than float64
# In the backward pass, reciprocals of smaller eigenvalues would overflow.
_SMALLEST = torch.finfo(torch.float64).tiny / torch.finfo(torch.float64).eps


def eigenvalues(gram: Tensor, *, check_finite: bool = True) -> Tensor:
    """Return all eigenvalues of a Gram matrix [..., n, n], ascending, float64 [..., n].

    A matrix that is complex, not symmetric or has a clearly negative eigenvalue is refused. With
    ``check_finite=False`` the values are not read, and a matrix with NaN has NaN eigenvalues.

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
        exact = in_float64(gram)
        tolerance = _TOLERANCE if gram.dtype == torch.float64 else _COARSE_TOLERANCE
        size = exact.detach().abs().amax((-2, -1))
        if not holds(((exact - exact.mT).detach().abs().amax((-2, -1)) <= tolerance * size).all()):
            raise ValueError("gram must be symmetric")
        values = torch.linalg.eigvalsh(exact)
        if not holds((values[..., 0].detach() >= -tolerance * size * gram.shape[-1]).all()):
            raise ValueError("gram must be positive semi-definite; it has a negative eigenvalue")
        return values
    gram = in_float64(gram)
    finite = torch.isfinite(gram).flatten(-2).all(-1)
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    safe = torch.where(finite[..., None, None], gram, identity)  # LAPACK raises on NaN
    return torch.where(finite[..., None], torch.linalg.eigvalsh(safe), torch.nan)


def _floor(values: Tensor, rtol: float | None) -> Tensor:
    """Return the noise floor, [..., 1]."""
    if rtol is None:
        rtol = values.shape[-1] * torch.finfo(torch.float64).eps
    if not 0 <= rtol < 1:
        raise ValueError(f"rtol must be at least 0 and below 1, not {rtol}")
    return (rtol * values[..., -1:]).clamp_min(_SMALLEST)


def _informative(values: Tensor, rtol: float | None) -> Tensor:
    """Return which eigenvalues are above the noise floor; NaN counts, so that it propagates."""
    return ~(values <= _floor(values, rtol))


def _normalised(gram: Tensor) -> tuple[Tensor, Tensor]:
    """Return C, with constant scales, and a mask of the rows that are not zero [..., n].

    A zero row counts as orthogonal to all others.
    """
    gram = in_float64(gram)
    sizes = gram.detach().diagonal(dim1=-2, dim2=-1)
    sized = ~(sizes <= _SMALLEST)
    inverse = sizes.masked_fill(~sized, 1.0).rsqrt().masked_fill(~sized, 0.0)
    return gram * inverse.unsqueeze(-1) * inverse.unsqueeze(-2) + torch.diag_embed((~sized).double()), sized


def _logarithms(gram: Tensor, rtol: float | None, check_finite: bool) -> tuple[Tensor, Tensor]:
    """Return log10 of the eigenvalues, ascending, 0 if they do not count, and which count, [..., n]."""
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
    # Σ log λ of the vanished eigenvalues, up to a constant: only its gradient is used.
    volume = torch.log10(of_normalised.masked_fill(~independent, 1.0)).sum(-1, keepdim=True)
    mean = (volume - logs.sum(-1, keepdim=True)) / vanished.sum(-1, keepdim=True).clamp_min(1)
    known = independent.all(-1, keepdim=True) & sized.all(-1, keepdim=True)
    pulled = torch.where(known, at_floor.detach() + (mean - mean.detach()), at_floor)
    return torch.where(vanished, pulled, logs), above | vanished


def numerical_rank(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """Return the number of eigenvalues above the noise floor, [...].

    It is less than n if samples repeat each other or if the residuals of some have almost vanished.

    Examples:
        >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> fs.numerical_rank(rows @ rows.T)
        tensor(2)
    """
    return _informative(eigenvalues(gram, check_finite=check_finite), rtol).sum(-1)


@conditioning_loss_named("variance")
def log_eigenvalue_variance(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """Return the paper's conditioning loss: the population variance of log10 of the eigenvalues, [...].

    It is 0 exactly if all eigenvalues are equal, and does not depend on the scale of the matrix. A matrix
    with fewer than two eigenvalues that count has variance 0 and no gradient.

    The population variance divides by n. The sample variance, the default of ``torch.var``, divides by
    n - 1. They differ by the constant factor n / (n - 1), 1.04 for 25 samples and 1.25 for 5, which γ can
    absorb. The paper writes Var and does not say which.

    Args:
        gram: symmetric positive semi-definite, [..., n, n].
        rtol: the noise floor relative to the largest eigenvalue; default n times the float64 epsilon.
        check_finite: refuse NaN and infinities. Reading the values makes a GPU wait.

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


@conditioning_loss_named("log-kappa")
def log_condition_number(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """Return log10(λ_max / λ_min) over the eigenvalues that count, [...]: the loss of the paper's ablation.

    Examples:
        >>> fs.log_condition_number(torch.diag(torch.tensor([4.0, 1.0, 100.0])))
        tensor(2., dtype=torch.float64)
    """
    logs, keep = _logarithms(gram, rtol, check_finite)
    largest = logs[..., -1]
    # In ascending order the first kept eigenvalue is the smallest; 0 if none is kept.
    first = keep.to(torch.int8).argmax(-1, keepdim=True)
    return largest - logs.gather(-1, first).squeeze(-1)


def condition_number(gram: Tensor, rtol: float | None = None, *, check_finite: bool = True) -> Tensor:
    """Return λ_max / λ_min over the eigenvalues that count, [...]; 1 for zeros, at most 1 / rtol.

    Zeros of repeated images do not count. Eigenvalues of samples whose residuals have vanished count with
    the value of the noise floor. Report :func:`numerical_rank` beside it: the number of eigenvalues above
    the floor.

    Examples:
        >>> fs.condition_number(torch.diag(torch.tensor([4.0, 1.0, 100.0])))
        tensor(100., dtype=torch.float64)
    """
    return torch.pow(10.0, log_condition_number(gram, rtol, check_finite=check_finite))
