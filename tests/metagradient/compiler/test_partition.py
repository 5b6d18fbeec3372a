"""Of pooling, the argmax is saved as bytes and the results are not saved at all; the rest as wanted."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.metagradient.compiler import partition as partition_module
from firststep.metagradient.compiler.partition import partition
from firststep.metagradient.compiler.rewrite import use_fast_kernels
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


def cut(saved_dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Result, gradient and what was saved between the parts."""
    graph, _ = trace_graph(forward_and_backward, (IMAGES, KERNEL, COTANGENT))
    use_fast_kernels(graph)
    # The cotangent is an argument of the backward part only.
    parts = partition(graph, 2, 1, saved_dtype)
    result, *saved = parts.forward(IMAGES, KERNEL)
    (gradient,) = parts.backward(IMAGES, KERNEL, COTANGENT, *saved)
    return result, gradient, saved


def test_pooling_is_saved_as_bytes() -> None:
    result, gradient, saved = cut()
    assert sorted((value.dtype, tuple(value.shape)) for value in saved if value.dtype is torch.uint8) == [
        (torch.uint8, (3, 5, 3, 2))
    ]
    assert [tuple(value.shape) for value in saved if value.dtype is not torch.uint8] == [(3, 5, 7, 5)]
    for got, wanted in zip((result, gradient), forward_and_backward(IMAGES, KERNEL, COTANGENT), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)


def test_what_is_saved_is_rounded_and_nothing_else() -> None:
    result, gradient, saved = cut(torch.float32)
    assert {value.dtype for value in saved} == {torch.uint8, torch.float32}
    expected, exact = forward_and_backward(IMAGES, KERNEL, COTANGENT)
    assert torch.equal(result, expected)
    assert gradient.dtype is torch.float64
    assert 0 < ((gradient - exact).norm() / exact.norm()).item() < 1e-6


@pytest.mark.parametrize(("large", "saved"), [(1, []), (2**30, [(3, 5, 7, 5)])])
def test_a_large_first_layer_of_few_channels_is_computed_again(
    large: int, saved: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_module, "_LARGE", large)
    images, kernel = IMAGES[:, :3], KERNEL[:, :3]
    graph, _ = trace_graph(forward_and_backward, (images, kernel, COTANGENT))
    use_fast_kernels(graph)
    parts = partition(graph, 2, 1)
    result, *kept = parts.forward(images, kernel)
    assert [tuple(value.shape) for value in kept if value.dtype is not torch.uint8] == saved
    (gradient,) = parts.backward(images, kernel, COTANGENT, *kept)
    for got, wanted in zip((result, gradient), forward_and_backward(images, kernel, COTANGENT), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)


def test_a_layer_of_more_channels_is_saved_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_module, "_LARGE", 1)
    *_, saved = cut()
    assert (3, 5, 7, 5) in {tuple(value.shape) for value in saved}
