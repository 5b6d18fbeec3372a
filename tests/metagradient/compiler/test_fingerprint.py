"""Functions that do different things have different fingerprints, however their code differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from firststep import maml
from firststep.functional import FunctionalModule
from firststep.metagradient.compiler.fingerprint import fingerprint
from firststep.metagradient.eager import EagerSteps
from firststep.metagradient.objective import Objective
from networks import shallow_conv, shallow_task

IMAGES = torch.rand(2, 3)


def of(function: Callable[..., Any], *arguments: Any) -> str | None:
    return fingerprint(function, arguments or (IMAGES,)).digest


class Scaled(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


def scaled(factor: float) -> Callable[[Tensor], Tensor]:
    return lambda x: x * factor


def hooked(hook: Callable[..., Any] | None) -> nn.Module:
    module = nn.Identity()
    if hook is not None:
        module.register_forward_hook(hook)
    return module


def patched(forward: Callable[[Tensor], Tensor]) -> nn.Module:
    module = Scaled(2.0)
    module.forward = forward
    return module


@pytest.mark.parametrize(
    "functions",
    [
        (scaled(2.0), scaled(2.0000001), scaled(-2.0), scaled(2)),
        (Scaled(2.0), Scaled(3.0), patched(lambda x: x + 2.0)),
        (hooked(None), hooked(lambda _m, _i, out: out.exp()), hooked(lambda _m, _i, out: out.sin())),
        (lambda x: x, lambda x: (x,), lambda x: (x, x), lambda x: x.clone()),
        (lambda x: (x.sin(), x.cos()), lambda x: (x.cos(), x.sin()), lambda x: (x.sin(), x.sin())),
        (lambda x: x.sum(0), lambda x: x.sum(1), lambda x: x.sum(0, dtype=torch.float64)),
    ],
)
def test_whatever_changes_the_operations_changes_the_digest(functions: tuple[Any, ...]) -> None:
    digests = [of(function) for function in functions]
    assert None not in digests
    assert len(set(digests)) == len(functions)
    assert digests == [of(function) for function in functions]


def test_the_roles_and_forms_of_the_inputs_are_part_of_it() -> None:
    x, y = torch.rand(2, 3), torch.rand(2, 3)
    digests = [
        of(torch.sub, x, y),
        of(lambda a, b: torch.sub(b, a), x, y),
        of(torch.sub, x, x),
        of(torch.sub, x.double(), y.double()),
        of(torch.sub, torch.rand(3, 2).T, y),
        of(torch.sub, x, y[:1]),
    ]
    assert len(set(digests)) == len(digests)
    assert of(torch.sub, 2 * x, 3 * y) == digests[0]  # values do not matter


def test_derivatives_are_part_of_it() -> None:
    def gradient(power: int) -> Callable[[Tensor], Tensor]:
        def function(x: Tensor) -> Tensor:
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                return torch.autograd.grad((x**power).sum(), x)[0]

        return function

    assert len({of(gradient(2)), of(gradient(3)), of(lambda x: x**2)} - {None}) == 3


def test_values_from_elsewhere_have_no_digest() -> None:
    buffer = torch.rand(3)
    assert of(lambda x: x + buffer) is None
    assert of(lambda x: x + torch.tensor([1.0, 2.0, 3.0])) is None
    assert of(lambda x: torch.rand(2, 3, generator=torch.Generator()) + x) is None


def test_the_query_gradient_of_a_network_has_one() -> None:
    model, task = FunctionalModule(shallow_conv()), shallow_task()
    steps = EagerSteps(Objective(model, maml(0.1)))
    digests = [
        of(steps.query, model.params(), task.query_x, task.query_y),
        of(steps.query, model.params(), task.support_x, task.support_y),
    ]
    assert None not in digests
    assert digests[0] != digests[1]
