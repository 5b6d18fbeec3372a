"""The Gauss-Newton step: the dense solution, and what makes it a reference for conditioning."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import firststep as fs
from firststep.functional import FunctionalModule, Learner, adapt
from firststep.rules import scaled


def setting(
    n: int, features: int, ways: int, seed: int, bias: bool = True
) -> tuple[FunctionalModule, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    network = nn.Linear(features, ways, bias=bias).double()
    with torch.no_grad():
        for value in network.parameters():
            value.copy_(torch.randn(value.shape, generator=g, dtype=torch.float64))
    y = torch.arange(n) % ways
    return FunctionalModule(network), torch.randn(n, features, generator=g, dtype=torch.float64), y


def step_of(model: FunctionalModule, x: Tensor, y: Tensor, rule: fs.Rule | None = None) -> Tensor:
    trajectory = adapt(Learner(model, rule or fs.gauss_newton()), x, y, steps=1)
    start, end = trajectory.params
    return torch.cat([(end[name] - start[name]).reshape(-1) for name in start])


def dense_step(model: FunctionalModule, x: Tensor, y: Tensor) -> Tensor:
    """Return the minimum of |r + J δ|² + λ |δ|² by least squares on the stacked system."""
    params = {name: value.detach() for name, value in model.params().items()}
    names, shapes = list(params), [value.shape for value in params.values()]

    def residuals(flat: Tensor) -> Tensor:
        parts = flat.split([shape.numel() for shape in shapes])
        values = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
        return (F.cross_entropy(model(values, x).logits, y, reduction="none") / len(y)).sqrt()

    flat = torch.cat([value.reshape(-1) for value in params.values()])
    jacobian = torch.autograd.functional.jacobian(residuals, flat)
    assert isinstance(jacobian, Tensor)
    damping = 0.01 * (jacobian @ jacobian.T).trace() / len(y)
    system = torch.cat([jacobian, damping.sqrt() * torch.eye(len(flat), dtype=torch.float64)])
    target = torch.cat([-residuals(flat), torch.zeros(len(flat), dtype=torch.float64)])
    return torch.linalg.lstsq(system, target[:, None]).solution[:, 0]


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 12),
    features=st.integers(1, 12),
    ways=st.integers(2, 5),
    bias=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_it_is_the_damped_least_squares_step(n: int, features: int, ways: int, bias: bool, seed: int) -> None:
    model, x, y = setting(n, features, ways, seed, bias)
    torch.testing.assert_close(step_of(model, x, y), dense_step(model, x, y), rtol=1e-7, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(scale=st.floats(0.01, 100), seed=st.integers(0, 1000))
def test_the_scale_of_the_features_does_not_matter(scale: float, seed: int) -> None:
    """Without a bias, whose feature is 1, the change of the logits does not depend on the features' scale."""
    model, x, y = setting(8, 12, 3, seed, bias=False)
    plain = step_of(model, x, y).view(3, 12) @ x.T
    with torch.no_grad():
        model.module.weight /= scale  # type: ignore[operator]
    torch.testing.assert_close(step_of(model, scale * x, y).view(3, 12) @ (scale * x).T, plain)


def test_equal_eigenvalues_leave_the_direction_of_the_gradient() -> None:
    """With perfect conditioning the two steps are parallel: there is nothing to correct."""
    model, _, y = setting(4, 4, 4, 0, bias=False)
    with torch.no_grad():
        model.module.weight.zero_()  # type: ignore[operator]
    x = torch.eye(4, dtype=torch.float64)
    assert fs.condition_number(fs.functional.support_gram(model, x, y)).item() == pytest.approx(1)
    newton, descent = step_of(model, x, y), step_of(model, x, y, fs.maml(0.1))
    assert F.cosine_similarity(newton, descent, 0).item() == pytest.approx(1)


def test_repeated_images_half_steps_and_single_precision() -> None:
    model, x, y = setting(10, 16, 5, 1)
    x[5:], y[5:] = x[:5].clone(), y[:5].clone()
    whole = step_of(model, x, y)
    torch.testing.assert_close(whole, dense_step(model, x, y), rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(step_of(model, x, y, fs.gauss_newton(0.5)), whole / 2)
    torch.testing.assert_close(step_of(model, x, y, scaled(fs.gauss_newton(), 0.5)), whole / 2)
    model.module.float()
    single = step_of(model, x.float(), y)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), whole, rtol=1e-3, atol=1e-4)


def test_it_goes_equally_far_in_all_directions() -> None:
    """Orthogonal samples from size 1 down to 0.3: descent fits the large ones, this one all alike."""
    model, _, y = setting(5, 5, 5, 2, bias=False)
    with torch.no_grad():
        model.module.weight.zero_()  # type: ignore[operator]
    x = torch.diag(torch.linspace(1, 0.3, 5, dtype=torch.float64))

    def gains(rule: fs.Rule) -> Tensor:
        adapted = adapt(Learner(model, rule), x, y, steps=1).adapted
        return model(adapted, x).logits.diagonal()

    newton, descent = gains(fs.gauss_newton()), gains(fs.maml(5.0))
    assert newton.min() > 0.9 * newton.max()
    assert descent.min() < 0.15 * descent.max()
    # A whole step: r + J δ = 0 moves a sample by 2 ℓ along -e / |e|², of which the right class has 2 ℓ.
    assert newton.max().item() == pytest.approx(2 * torch.tensor(5.0).log().item(), rel=0.02)
