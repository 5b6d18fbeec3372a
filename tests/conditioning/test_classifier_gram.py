"""The closed form against the dense Jacobian of autograd."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from firststep import classifier_gram, conditioning_loss, cross_entropy_residuals, log_eigenvalue_variance
from reference import dense_gram, naive_residuals, relative_error


def problem(n: int, d: int, classes: int, seed: int, scale: float = 1.0) -> tuple[torch.Tensor, ...]:
    g = torch.Generator().manual_seed(seed)
    features = torch.randn(n, d, generator=g, dtype=torch.float64) * scale
    weight = torch.randn(classes, d, generator=g, dtype=torch.float64)
    bias = torch.randn(classes, generator=g, dtype=torch.float64)
    labels = torch.randint(classes, (n,), generator=g)
    return features, weight, bias, labels


@given(
    n=st.integers(1, 12),
    d=st.integers(1, 9),
    classes=st.integers(2, 6),
    seed=st.integers(0, 10_000),
    with_bias=st.booleans(),
)
def test_closed_form_is_the_dense_jacobian_gram(
    n: int, d: int, classes: int, seed: int, with_bias: bool
) -> None:
    features, weight, bias, labels = problem(n, d, classes, seed)
    params = {"weight": weight.requires_grad_(), "bias": bias.requires_grad_()}
    expected = dense_gram(
        lambda p: naive_residuals(F.linear(features, p["weight"], p["bias"]), labels),
        params,
        ["weight", "bias"] if with_bias else ["weight"],
    )
    got = classifier_gram(features, F.linear(features, weight, bias), labels, bias=with_bias)
    assert got.dtype == torch.float64
    assert relative_error(got, expected) < 1e-9


def test_gradient_reaches_what_formed_the_features() -> None:
    inputs, weight, bias, labels = problem(6, 8, 3, seed=3)
    body = torch.randn(8, 8, generator=torch.Generator().manual_seed(9), dtype=torch.float64).requires_grad_()

    def loss(gram_of: str) -> torch.Tensor:
        features = torch.tanh(inputs @ body)
        logits = F.linear(features, weight, bias)
        if gram_of == "closed form":
            return conditioning_loss(features, logits, labels)
        params = {"weight": weight.clone().requires_grad_(), "bias": bias.clone().requires_grad_()}
        dense = dense_gram(
            lambda p: naive_residuals(F.linear(features, p["weight"], p["bias"]), labels),
            params,
            list(params),
        )
        return log_eigenvalue_variance(dense)

    got, expected = (torch.autograd.grad(loss(kind), body)[0] for kind in ("closed form", "dense"))
    assert relative_error(got, expected) < 1e-8


@pytest.mark.parametrize("leading", [(4,), (2, 3)])
def test_batched_is_one_by_one(leading: tuple[int, ...], generator: torch.Generator) -> None:
    features = torch.randn(*leading, 5, 7, generator=generator)
    logits = torch.randn(*leading, 5, 3, generator=generator)
    labels = torch.randint(3, (*leading, 5), generator=generator)
    gram = classifier_gram(features, logits, labels)
    loss = conditioning_loss(features, logits, labels)
    assert gram.shape == (*leading, 5, 5)
    assert loss.shape == leading
    flat = [t.flatten(0, len(leading) - 1) for t in (features, logits, labels)]
    for i, (f, z, y) in enumerate(zip(*flat, strict=True)):
        torch.testing.assert_close(gram.flatten(0, -3)[i], classifier_gram(f, z, y), rtol=1e-12, atol=0)
        torch.testing.assert_close(loss.flatten()[i], conditioning_loss(f, z, y), rtol=1e-9, atol=0)


def test_works_inside_vmap_without_the_value_checks(generator: torch.Generator) -> None:
    features = torch.randn(3, 5, 7, generator=generator)
    logits = torch.randn(3, 5, 3, generator=generator)
    labels = torch.randint(3, (3, 5), generator=generator)
    mapped = torch.vmap(lambda f, z, y: classifier_gram(f, z, y, check_finite=False))(
        features, logits, labels
    )
    torch.testing.assert_close(mapped, classifier_gram(features, logits, labels))


def test_residuals_square_to_the_mean_cross_entropy(generator: torch.Generator) -> None:
    logits = torch.randn(9, 4, generator=generator, dtype=torch.float64) * 5
    labels = torch.randint(4, (9,), generator=generator)
    total = cross_entropy_residuals(logits, labels).square().sum()
    torch.testing.assert_close(total, F.cross_entropy(logits, labels), rtol=1e-12, atol=0)
