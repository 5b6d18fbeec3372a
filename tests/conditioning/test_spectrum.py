"""The loss is scale-free, zero for equal eigenvalues, and has the gradient of finite differences."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from firststep import condition_number, eigenvalues, log_condition_number, log_eigenvalue_variance

positive = st.floats(1e-3, 1e3)


def rotated(values: list[float], seed: int = 0) -> torch.Tensor:
    """Return a symmetric matrix with these eigenvalues and random eigenvectors."""
    g = torch.Generator().manual_seed(seed)
    basis, _ = torch.linalg.qr(torch.randn(len(values), len(values), generator=g, dtype=torch.float64))
    return basis @ torch.diag(torch.tensor(values, dtype=torch.float64)) @ basis.T


def test_the_paper_s_example() -> None:
    small, large = (log_eigenvalue_variance(torch.diag(torch.tensor(v))) for v in ([0.1, 0.2], [10.0, 20.0]))
    assert small.item() == pytest.approx(large.item(), rel=1e-6)
    assert small.item() == pytest.approx((torch.tensor(2.0).log10().item() / 2) ** 2, rel=1e-6)


@given(
    values=st.lists(positive, min_size=1, max_size=8), factor=st.floats(1e-8, 1e8), seed=st.integers(0, 99)
)
def test_scaling_changes_nothing(values: list[float], factor: float, seed: int) -> None:
    gram = rotated(values, seed)
    for figure in (log_eigenvalue_variance, log_condition_number):
        assert figure(gram * factor).item() == pytest.approx(figure(gram).item(), rel=1e-6, abs=1e-12)


@given(values=st.lists(positive, min_size=2, max_size=8), seed=st.integers(0, 99))
def test_figures_are_those_of_the_known_eigenvalues(values: list[float], seed: int) -> None:
    gram = rotated(values, seed)
    logs = torch.tensor(values, dtype=torch.float64).log10()
    torch.testing.assert_close(eigenvalues(gram), torch.tensor(sorted(values), dtype=torch.float64))
    torch.testing.assert_close(log_eigenvalue_variance(gram), logs.var(correction=0), rtol=1e-6, atol=1e-10)
    torch.testing.assert_close(log_condition_number(gram), logs.max() - logs.min(), rtol=1e-6, atol=1e-9)
    assert condition_number(gram).item() == pytest.approx(max(values) / min(values), rel=1e-6)


@given(value=positive, n=st.integers(1, 8), seed=st.integers(0, 99))
def test_equal_eigenvalues_have_no_loss(value: float, n: int, seed: int) -> None:
    assert log_eigenvalue_variance(rotated([value] * n, seed)).item() == pytest.approx(0, abs=1e-20)
    assert condition_number(rotated([value] * n, seed)).item() == pytest.approx(1)


@pytest.mark.parametrize("figure", [log_eigenvalue_variance, log_condition_number])
def test_gradient_is_that_of_finite_differences(figure: object) -> None:
    g = torch.Generator().manual_seed(7)
    factor = torch.randn(5, 9, generator=g, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda j: figure(j @ j.T), factor)  # type: ignore[operator]


def test_noise_eigenvalues_enter_nothing_and_get_no_gradient() -> None:
    values = [1e-18, 1e-17, 1.0, 10.0]
    gram = rotated(values).requires_grad_()
    loss = log_eigenvalue_variance(gram)
    assert loss.item() == pytest.approx(0.25, rel=1e-6)
    assert condition_number(gram.detach()).item() == pytest.approx(10, rel=1e-6)
    (grad,) = torch.autograd.grad(loss, gram)
    basis = torch.linalg.eigh(gram.detach()).eigenvectors
    along = torch.diagonal(basis.T @ grad @ basis)
    assert along[:2].abs().max() < 1e-12
    assert along[2:].abs().min() > 1e-3


def test_rtol_moves_the_border_of_noise() -> None:
    gram = torch.diag(torch.tensor([1e-6, 1.0, 10.0]))
    assert condition_number(gram).item() == pytest.approx(1e7, rel=1e-4)
    assert condition_number(gram, rtol=1e-5).item() == pytest.approx(1e5, rel=1e-4)  # a small row counts
    gram = rotated([1e-6, 1.0, 10.0])
    assert condition_number(gram, rtol=1e-5).item() == pytest.approx(10, rel=1e-4)  # rows that repeat do not
