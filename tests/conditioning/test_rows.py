"""Rows of the Jacobian: many at once are the same as one by one, also when they are differentiated."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

from firststep import build_backbone, cross_entropy_residuals
from firststep.conditioning.jacobian_rows import batchable, pull_rows
from firststep.functional import FunctionalModule

LABELS = torch.arange(2).repeat(4)


def residuals_of(module: nn.Module, classifier: str = "classifier") -> tuple[Tensor, list[Tensor]]:
    torch.manual_seed(0)
    model = FunctionalModule(module.double(), classifier=classifier)
    theta = {name: torch.randn_like(value, requires_grad=True) / 3 for name, value in model.params().items()}
    images = torch.rand(8, 3, 16, 16, dtype=torch.float64)
    with torch.enable_grad():
        return cross_entropy_residuals(model(theta, images).logits, LABELS), list(theta.values())


class Cubed(Function):
    """A user's own operation, that says nothing of batching."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * cotangent * x**2


class CubedAtOnce(Function):
    """And one that does."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    backward = Cubed.backward


class Cube(nn.Module):
    def __init__(self, function: type[Function]) -> None:
        super().__init__()
        self.function = function

    def forward(self, images: Tensor) -> Tensor:
        cubed: Tensor = self.function.apply(images)
        return cubed


class Normed(nn.Module):
    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), norm, nn.ReLU(), nn.MaxPool2d(14), nn.Flatten())
        self.classifier = nn.Linear(4, 2)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(images))
        return logits


@pytest.mark.parametrize(
    ("module", "at_once"),
    [
        (build_backbone("conv4", image_size=16, filters=3, ways=2), True),
        (Normed(nn.BatchNorm2d(4, track_running_stats=False)), False),
        (Normed(nn.GroupNorm(2, 4)), False),
        (Normed(nn.LayerNorm(14)), False),
        (Normed(Cube(Cubed)), False),
        (Normed(Cube(CubedAtOnce)), True),
    ],
    ids=["own", "batch norm", "group norm", "layer norm", "own operation", "own operation, batched"],
)
def test_many_rows_are_one_by_one(module: nn.Module, at_once: bool) -> None:
    vector, leaves = residuals_of(module)
    assert batchable(vector) == at_once
    units = torch.eye(8, dtype=torch.float64)
    together = pull_rows(vector, leaves, units, create_graph=True)
    single = [pull_rows(vector, leaves, unit[None], create_graph=True) for unit in units]
    against = [torch.randn_like(row) for row in together]
    products = []
    for rows in (together, [torch.cat(parts) for parts in zip(*single, strict=True)]):
        products.append(torch.stack([(f * j).sum() for f, j in zip(against, rows, strict=True)]).sum())
        for row, expected in zip(rows, together, strict=True):
            torch.testing.assert_close(row, expected)
    first, second = (
        torch.autograd.grad(product, leaves, retain_graph=True, materialize_grads=True)
        for product in products
    )
    for mine, expected in zip(first, second, strict=True):
        torch.testing.assert_close(mine, expected)


@pytest.mark.parametrize("name", ["conv4", "conv6", "resnet10", "resnet18"])
def test_the_networks_of_the_paper_take_many_rows_at_once(name: str) -> None:
    model = FunctionalModule(build_backbone(name, image_size=32, channels=3, ways=2))
    theta = {key: value.detach().requires_grad_() for key, value in model.params().items()}
    logits = model(theta, torch.rand(8, 3, 32, 32)).logits
    assert batchable(cross_entropy_residuals(logits, LABELS))


def test_inputs_that_do_not_matter_have_rows_of_zeros() -> None:
    used, unused = torch.rand(3, requires_grad=True), torch.rand(2, requires_grad=True)
    for count in (1, 3):
        rows, zeros = pull_rows(used * 2, [used, unused], torch.eye(3)[:count])
        assert torch.equal(rows, 2 * torch.eye(3)[:count])
        assert torch.equal(zeros, torch.zeros(count, 2))
