"""Pooling saves its argmax as bytes and not its results; other saved tensors are rounded on request."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.metagradient.compiler import partition as partition_module
from firststep.metagradient.compiler.partition import partition
from firststep.metagradient.compiler.passes import REWRITE, apply
from firststep.metagradient.compiler.trace import trace_graph
from networks import generator


def forward_and_backward(images: Tensor, kernel: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        kernel = kernel.detach().requires_grad_()
        result = F.relu(F.max_pool2d(F.conv2d(images, kernel).sin(), 2)).exp()
        (gradient,) = torch.autograd.grad(result, kernel, cotangent)
    return result.detach(), gradient


IMAGES, KERNEL, COTANGENT = (
    torch.randn(shape, generator=generator(seed), dtype=torch.float64)
    for seed, shape in enumerate([(3, 8, 9, 7), (5, 8, 3, 3), (3, 5, 3, 2)])
)


def split(saved_dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return the result, the gradient and the tensors saved between the parts."""
    graph, _ = trace_graph(forward_and_backward, (IMAGES, KERNEL, COTANGENT))
    apply(REWRITE, graph)
    # Only the backward part takes the cotangent.
    parts = partition(graph, 2, 1, saved_dtype)
    result, *saved = parts.forward(IMAGES, KERNEL)
    (gradient,) = parts.backward(IMAGES, KERNEL, COTANGENT, *saved)
    return result, gradient, saved


def test_pooling_saves_bytes() -> None:
    result, gradient, saved = split()
    assert sorted((value.dtype, tuple(value.shape)) for value in saved if value.dtype is torch.uint8) == [
        (torch.uint8, (3, 5, 3, 2))
    ]
    assert [tuple(value.shape) for value in saved if value.dtype is not torch.uint8] == [(3, 5, 7, 5)]
    for got, value in zip((result, gradient), forward_and_backward(IMAGES, KERNEL, COTANGENT), strict=True):
        torch.testing.assert_close(got, value, rtol=1e-12, atol=1e-12)


def test_only_saved_tensors_are_rounded() -> None:
    result, gradient, saved = split(torch.float32)
    assert {value.dtype for value in saved} == {torch.uint8, torch.float32}
    expected, exact = forward_and_backward(IMAGES, KERNEL, COTANGENT)
    assert torch.equal(result, expected)
    assert gradient.dtype is torch.float64
    assert 0 < ((gradient - exact).norm() / exact.norm()).item() < 1e-6


@pytest.mark.parametrize(("large", "saved"), [(1, []), (2**30, [(3, 5, 7, 5)])])
def test_a_large_first_layer_with_few_channels_is_recomputed(
    large: int, saved: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_module, "_LARGE", large)
    images, kernel = IMAGES[:, :3], KERNEL[:, :3]
    graph, _ = trace_graph(forward_and_backward, (images, kernel, COTANGENT))
    apply(REWRITE, graph)
    parts = partition(graph, 2, 1)
    result, *kept = parts.forward(images, kernel)
    assert [tuple(value.shape) for value in kept if value.dtype is not torch.uint8] == saved
    (gradient,) = parts.backward(images, kernel, COTANGENT, *kept)
    for got, value in zip((result, gradient), forward_and_backward(images, kernel, COTANGENT), strict=True):
        torch.testing.assert_close(got, value, rtol=1e-12, atol=1e-12)


def test_a_large_layer_with_more_channels_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_module, "_LARGE", 1)
    *_, saved = split()
    assert (3, 5, 7, 5) in {tuple(value.shape) for value in saved}
