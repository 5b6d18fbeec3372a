"""A classifier that favours one class more and more: no cliff where its residuals go under."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from firststep import (
    classifier_gram,
    condition_number,
    log_condition_number,
    log_eigenvalue_variance,
    numerical_rank,
)

N, WAYS = 25, 5
HIGHEST = 1 / (N * torch.finfo(torch.float64).eps)
LABELS = torch.arange(WAYS).repeat_interleave(N // WAYS)


def samples(dtype: torch.dtype = torch.float64, features: int = 64, seed: int = 0) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return (
        torch.randn(N, features, generator=g, dtype=torch.float64).to(dtype),
        torch.randn(N, WAYS, generator=g, dtype=torch.float64).to(dtype),
    )


def gram_at(offset: Tensor | float, phi: Tensor, logits: Tensor) -> Tensor:
    favoured = torch.zeros(WAYS, dtype=logits.dtype)
    favoured[0] = 1
    return classifier_gram(phi, logits + favoured * offset, LABELS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_condition_number_and_loss_are_continuous_over_the_collapse(dtype: torch.dtype) -> None:
    phi, logits = samples(dtype)
    offsets = torch.arange(0, 60.01, 0.05, dtype=torch.float64)
    grams = torch.stack([gram_at(float(o), phi, logits) for o in offsets])
    kappa, loss, rank = log_condition_number(grams), log_eigenvalue_variance(grams), numerical_rank(grams)
    assert rank[0] == N
    assert rank[-1] == N - N // WAYS
    # An offset of 0.05 changes the vanishing eigenvalues by the factor exp(0.05) = 10^0.022.
    assert kappa.diff().abs().max() < 0.05
    assert loss.diff().abs().max() < 0.3
    late = offsets > 5
    assert (kappa[late].diff() > -1e-2).all(), "it does not look better conditioned as it collapses"
    assert (loss[late].diff() > -1e-2).all()
    assert kappa[-1].item() == pytest.approx(torch.tensor(HIGHEST).log10().item(), abs=1e-6)
    assert condition_number(grams).max() <= HIGHEST * (1 + 1e-9)


@pytest.mark.parametrize("figure", [log_eigenvalue_variance, log_condition_number])
def test_the_gradient_pulls_a_collapsed_model_out(figure: object) -> None:
    """By the offset: the slope of the logarithms themselves, also where rounding has swallowed them."""
    phi, logits = samples()

    def slope(at: float) -> float:
        offset = torch.tensor(at, dtype=torch.float64, requires_grad=True)
        (grad,) = torch.autograd.grad(figure(gram_at(offset, phi, logits)), offset)  # type: ignore[operator]
        return grad.item()

    before = slope(25.0)
    assert before > 0.1
    for at in (30.0, 33.0, 34.0, 35.0, 36.0, 40.0, 60.0):
        assert slope(at) > 0.5 * before, at


def test_the_slope_of_what_has_vanished_is_that_of_the_logarithms() -> None:
    """Against a reference that never forms G: log λ_min of a matrix scaled by hand, in exact block form."""
    sizes = torch.tensor([1.0, 1.0, 1e-12, 1e-12], dtype=torch.float64)
    g = torch.Generator().manual_seed(3)
    rows = torch.randn(4, 9, generator=g, dtype=torch.float64)
    log_size = torch.zeros((), dtype=torch.float64, requires_grad=True)
    scale = torch.where(sizes < 1, log_size.exp(), torch.ones(())) * sizes
    (slope,) = torch.autograd.grad(log_condition_number((rows @ rows.T) * scale[:, None] * scale), log_size)
    # λ of the vanished rows goes with the square of their size.
    assert slope.item() == pytest.approx(-2 / torch.tensor(10.0).log().item(), rel=1e-6)


def test_before_the_border_nothing_has_changed() -> None:
    phi, logits = samples()
    for offset in (0.0, 10.0, 25.0, 30.0):
        gram = gram_at(offset, phi, logits)
        logs = torch.linalg.eigvalsh(gram).log10()
        assert log_eigenvalue_variance(gram).item() == pytest.approx(logs.var(correction=0).item(), rel=1e-12)
        assert log_condition_number(gram).item() == pytest.approx((logs[-1] - logs[0]).item(), rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    repeats=st.integers(1, 6),
    offset=st.floats(0, 30),
    features=st.sampled_from([3, 40]),
    seed=st.integers(0, 1000),
)
def test_repeated_images_count_once(repeats: int, offset: float, features: int, seed: int) -> None:
    """Exact copies add zeros of the task, not of the model: they enter nothing."""
    phi, logits = samples(features=features, seed=seed)
    copies = torch.arange(repeats)
    phi[copies], logits[copies] = phi[10].clone(), logits[10].clone()
    labels = LABELS.clone()
    labels[copies] = int(labels[10])
    shift = torch.zeros(WAYS, dtype=torch.float64)
    shift[0] = offset
    gram = classifier_gram(phi, logits + shift, labels)
    values = torch.linalg.eigvalsh(gram)
    rank = int(numerical_rank(gram))
    assert rank <= min(N - repeats, (WAYS - 1) * (features + 1))
    logs = values[N - rank :].log10()
    assert log_eigenvalue_variance(gram).item() == pytest.approx(logs.var(correction=0).item(), rel=1e-9)
    assert log_condition_number(gram).item() == pytest.approx((logs[-1] - logs[0]).item(), rel=1e-9)


def test_repeated_images_in_a_collapsed_model() -> None:
    """One pair of copies: one zero of the task; the vanished residuals count at the border all the same."""
    phi, logits = samples()
    phi[11], logits[11] = phi[10], logits[10]
    gram = gram_at(60.0, phi, logits)
    assert numerical_rank(gram).item() == N - N // WAYS - 1
    assert condition_number(gram).item() == pytest.approx(HIGHEST)
    phi.requires_grad_()
    (grad,) = torch.autograd.grad(log_eigenvalue_variance(gram_at(60.0, phi, logits)), phi)
    assert torch.isfinite(grad).all()


def test_sizes_that_underflow_altogether() -> None:
    phi, logits = samples()
    phi.requires_grad_()
    for offset in (700.0, 1500.0, 1e5):
        gram = gram_at(offset, phi, logits)
        assert condition_number(gram).item() == pytest.approx(HIGHEST)
        (grad,) = torch.autograd.grad(log_eigenvalue_variance(gram), phi)
        assert torch.isfinite(grad).all()


def test_a_batch_is_its_matrices_one_by_one() -> None:
    phi, logits = samples()
    grams = torch.stack([gram_at(o, phi, logits) for o in (0.0, 20.0, 60.0)] + [torch.zeros(N, N)])
    for figure in (log_eigenvalue_variance, log_condition_number):
        torch.testing.assert_close(figure(grams), torch.stack([figure(gram) for gram in grams]))
        torch.testing.assert_close(torch.vmap(lambda g: figure(g, check_finite=False))(grams), figure(grams))  # noqa: B023
    nan = torch.full((N, N), torch.nan, dtype=torch.float64)
    found = log_eigenvalue_variance(torch.stack([grams[1], nan]), check_finite=False)
    assert torch.isnan(found).tolist() == [False, True]
