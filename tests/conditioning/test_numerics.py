"""Cases of NaN in naive formulas: zero losses, identical images, huge logits, one sample, a hundred."""

from __future__ import annotations

import math

import pytest
import torch

from firststep import (
    classifier_gram,
    condition_number,
    conditioning_loss,
    cross_entropy_residuals,
    jacobian_gram,
    log_condition_number,
    log_eigenvalue_variance,
    numerical_rank,
    residuals,
)


def corner_cases() -> dict[str, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    g = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    labels = torch.arange(5).repeat(2)
    one_hot = torch.nn.functional.one_hot(labels, 5).double()
    return {
        "ordinary": (normal(10, 8), normal(10, 5), labels),
        "some losses underflow": (normal(10, 8), one_hot * torch.linspace(0, 2000, 10)[:, None], labels),
        "all losses underflow": (normal(10, 8), one_hot * 1e4, labels),
        "losses tiny but not zero": (normal(10, 8), one_hot * 60, labels),
        "losses at the switch of formulas": (normal(10, 8), one_hot * (40 + math.log(4)), labels),
        "logits of +-1e4": (normal(10, 8), normal(10, 5).sign() * 1e4, labels),
        "all wrong by 1e4": (normal(10, 8), one_hot.roll(1, 1) * 1e4, labels),
        "identical images": (normal(1, 8).expand(10, 8), normal(1, 5).expand(10, 5), labels),
        "identical images and labels": (
            normal(1, 8).expand(10, 8),
            normal(1, 5).expand(10, 5),
            torch.zeros(10, dtype=torch.long),
        ),
        "zero features": (torch.zeros(10, 8, dtype=torch.float64), normal(10, 5), labels),
        "one sample": (normal(1, 8), normal(1, 5), torch.tensor([3])),
        "a hundred samples": (normal(100, 200), normal(100, 5), torch.arange(5).repeat(20)),
        "more samples than features": (normal(10, 2), normal(10, 5), labels),
        "all logits equal": (normal(10, 8), torch.zeros(10, 5, dtype=torch.float64), labels),
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", corner_cases())
def test_finite_value_and_gradient(case: str, dtype: torch.dtype) -> None:
    features, logits, labels = corner_cases()[case]
    features = features.to(dtype).clone().requires_grad_()
    logits = logits.to(dtype).clone().requires_grad_()
    gram = classifier_gram(features, logits, labels)
    for figure in (log_eigenvalue_variance, log_condition_number):
        value = figure(gram)
        assert value.dtype == torch.float64
        assert torch.isfinite(value)
        assert value >= 0
        for grad in torch.autograd.grad(value, (features, logits), retain_graph=True):
            assert torch.isfinite(grad).all()
    assert condition_number(gram) >= 1 - 1e-12


@pytest.mark.parametrize("case", corner_cases())
def test_residuals_are_finite_through_the_jacobian_too(case: str) -> None:
    features, logits, labels = corner_cases()[case]
    weight = torch.zeros(5, features.shape[1], dtype=torch.float64, requires_grad=True)
    gram = jacobian_gram(
        lambda p: cross_entropy_residuals(logits + features @ p["weight"].T, labels), {"weight": weight}
    )
    expected = classifier_gram(features, logits, labels, bias=False)
    torch.testing.assert_close(gram, expected, rtol=1e-9, atol=1e-14 * expected.max().item())
    (grad,) = torch.autograd.grad(log_eigenvalue_variance(gram), weight)
    assert torch.isfinite(grad).all()


def test_small_losses_keep_full_precision() -> None:
    """e/sqrt(ℓ) for two classes is sigmoid(m)/sqrt(softplus(m)) · (±1); mpmath-free check by scaling.

    For m → -∞ the Gram matrix of a well-fit sample tends to exp(m) |φ|² / (2 n): one part in 1e15 apart
    once exp(m) is below the rounding unit, however small the loss.
    """
    features = torch.ones(1, 3, dtype=torch.float64)
    for margin in (-45.0, -100.0, -600.0):
        logits = torch.tensor([[0.0, margin]], dtype=torch.float64)
        gram = classifier_gram(features, logits, torch.tensor([0]), bias=False)
        assert gram.item() == pytest.approx(math.exp(margin) * 3 * 2 / 4, rel=1e-13)


def test_both_sides_of_the_switch_agree() -> None:
    """The limit formula and the ordinary one meet at the switch, in value and in slope."""
    features = torch.ones(1, 1, dtype=torch.float64)
    labels = torch.tensor([0])
    results = []
    for margin in (-40.0 - 1e-9, -40.0 + 1e-9):
        m = torch.tensor(margin, dtype=torch.float64, requires_grad=True)
        gram = classifier_gram(features, torch.stack([torch.zeros_like(m), m])[None], labels)
        results.append((gram.log().item(), torch.autograd.grad(gram.log().sum(), m)[0].item()))
    assert results[0][0] == pytest.approx(results[1][0], abs=1e-8)
    assert results[0][1] == pytest.approx(1.0, rel=1e-12)  # d log exp(m) / dm
    assert results[1][1] == pytest.approx(1.0, rel=1e-12)


def test_rank_counts_what_identical_images_determine() -> None:
    features, logits, labels = corner_cases()["identical images"]
    gram = classifier_gram(features, logits, labels)
    # Five distinct errors e_i in the four-dimensional space of vectors that sum to zero.
    assert numerical_rank(gram).item() == 4
    assert numerical_rank(torch.zeros(4, 4)).item() == 0


def test_residual_of_zero_loss_has_zero_gradient() -> None:
    losses = torch.tensor([0.0, 4.0], requires_grad=True)
    r = residuals(losses)
    assert r.tolist() == pytest.approx([0.0, math.sqrt(2.0)], rel=1e-15)
    (grad,) = torch.autograd.grad(r.sum(), losses)
    assert grad.tolist() == pytest.approx([0.0, 1 / (4 * math.sqrt(2.0))])


GOOD = {"features": torch.zeros(4, 3), "logits": torch.zeros(4, 2), "labels": torch.tensor([0, 1, 0, 1])}


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("features", torch.full((4, 3), math.nan), "features contains NaN"),
        ("features", torch.full((4, 3), math.inf), "features contains infinite"),
        ("features", torch.zeros(5, 3), "features and logits must agree"),
        ("features", torch.zeros(3), "features must have shape"),
        ("features", [1.0], "features must be a tensor"),
        ("logits", torch.full((4, 2), math.nan), "logits contains NaN"),
        ("logits", torch.zeros(4, 1), "at least two classes"),
        ("logits", torch.zeros(2), "logits must have shape"),
        ("labels", torch.zeros(4), "labels must be integers"),
        ("labels", torch.tensor([0, 1]), "labels must have the shape"),
        ("labels", torch.tensor([0, 1, 0, 2]), r"labels must lie in 0\.\.1"),
        ("labels", torch.tensor([0, 1, 0, -1]), r"labels must lie in 0\.\.1"),
    ],
)
def test_bad_arguments_are_named(argument: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        conditioning_loss(**{**GOOD, argument: value})  # type: ignore[arg-type]


def test_bad_gram_and_losses_are_named() -> None:
    with pytest.raises(ValueError, match="gram must be square"):
        condition_number(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="gram contains NaN"):
        log_eigenvalue_variance(torch.full((2, 2), math.nan))
    with pytest.raises(ValueError, match="losses must not be negative"):
        residuals(torch.tensor([-1.0]))
    with pytest.raises(ValueError, match="losses contains NaN"):
        residuals(torch.tensor([math.nan]))


def test_unchecked_nan_shows_as_nan_and_only_where_it_is() -> None:
    grams = torch.stack([torch.eye(3), torch.full((3, 3), math.nan)])
    values = condition_number(grams, check_finite=False)
    assert values[0] == 1
    assert torch.isnan(values[1])
