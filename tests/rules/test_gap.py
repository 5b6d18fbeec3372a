"""GAP where singular vectors are delicate: detached, and harmless whatever the singular values."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from firststep import gap
from networks import generator

RULE = gap(1.0)


def matrix(values: list[float], rows: int, columns: int) -> Tensor:
    """Return a gradient [rows, columns, 1, 1] with these singular values."""
    source = generator(1)
    rank = min(rows, columns)
    left = torch.linalg.qr(torch.randn(rows, rank, generator=source, dtype=torch.float64)).Q
    right = torch.linalg.qr(torch.randn(columns, rank, generator=source, dtype=torch.float64)).Q
    return (left * torch.tensor(values, dtype=torch.float64) @ right.T)[:, :, None, None]


def step(grad: Tensor, m: Tensor) -> Tensor:
    return RULE.update({"w": grad}, {"w": grad}, {"m.w": m}, lambda values: grad.sum())["w"]


@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (5, 3), (3, 3)])
@pytest.mark.parametrize("values", [[2, 2, 1], [1, 1, 1], [3, 0, 0], [0, 0, 0], [1, 1e-200, 0]])
def test_any_singular_values_give_finite_steps_and_gradients(
    values: list[float], rows: int, columns: int
) -> None:
    grad = matrix(values, rows, columns).requires_grad_()
    m = torch.tensor([0.3, 1.0, -0.5], dtype=torch.float64, requires_grad=True)
    moved = step(grad, m)
    assert torch.isfinite(moved).all()
    for gradient in torch.autograd.grad(moved.square().sum(), [grad, m]):
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (5, 3)])
def test_singular_values_are_scaled_one_by_one(rows: int, columns: int) -> None:
    m = torch.tensor([0.3, 1.0, -0.5], dtype=torch.float64)
    scales = torch.log1p(torch.exp(2 * m)) / 2
    grad = matrix([4.0, 2.0, 1.0], rows, columns)
    expected = torch.tensor([4.0, 2.0, 1.0], dtype=torch.float64) * scales
    got = torch.linalg.svdvals(step(grad, m).flatten(1))
    torch.testing.assert_close(got, expected.sort(descending=True).values)


def test_singular_vectors_are_constants_to_the_meta_gradient() -> None:
    """For fixed U the step is linear in the gradient: its derivative is minus the preconditioner."""
    grad = matrix([4.0, 2.0, 1.0], 3, 5)
    m = torch.tensor([0.3, 1.0, -0.5], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda g: step(g, m).flatten(), grad).flatten(1)
    left = torch.linalg.svd(grad.flatten(1)).U
    preconditioner = left @ torch.diag(torch.log1p(torch.exp(2 * m)) / 2) @ left.T
    torch.testing.assert_close(
        jacobian, -torch.kron(preconditioner, torch.eye(5, dtype=torch.float64)), check_dtype=False
    )


def test_a_diverged_gradient_shows_as_nan_instead_of_raising() -> None:
    grad = matrix([4.0, 2.0, 1.0], 3, 5)
    grad[0, 0] = float("inf")
    assert not torch.isfinite(step(grad, torch.ones(3, dtype=torch.float64))).all()
