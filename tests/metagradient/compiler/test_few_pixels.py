"""Convolutions as products of patches equal torch's, for any stride and padding."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from firststep.metagradient.compiler import few_pixels
from firststep.metagradient.compiler.few_pixels import (
    has_few_pixels,
    product_of_patches,
    sum_of_patches,
    use_products_of_patches,
)
from firststep.metagradient.compiler.trace import trace_graph
from networks import generator

aten = torch.ops.aten
OURS = {torch.ops.firststep.product_of_patches.default, torch.ops.firststep.sum_of_patches.default}


def noise(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


@given(
    height=st.integers(1, 8),
    width=st.integers(1, 8),
    entries=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    biased=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_convolution_and_image_gradient_equal_torch(
    height: int,
    width: int,
    entries: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    biased: bool,
) -> None:
    pixels = [max(height, entries[0]), max(width, entries[1])]
    x = noise(2, 3, *pixels, seed=0).requires_grad_()
    kernel, bias = noise(4, 3, *entries, seed=1), noise(4, seed=2) if biased else None
    expected = F.conv2d(x, kernel, bias, stride, padding)
    got = product_of_patches(x, kernel, bias, list(stride), list(padding))
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    g = noise(*expected.shape, seed=3)
    (gradient,) = torch.autograd.grad(expected, x, g)
    found = sum_of_patches(g, kernel, pixels, list(stride), list(padding))
    torch.testing.assert_close(found, gradient, rtol=1e-12, atol=1e-12)


def test_products_of_patches_are_for_few_pixels_and_large_kernels() -> None:
    cpu = torch.device("cpu")
    assert has_few_pixels(torch.Size([25, 512, 3, 3]), (512, 512, 3, 3), cpu)
    assert not has_few_pixels(torch.Size([25, 512, 7, 7]), (512, 512, 3, 3), cpu)
    assert not has_few_pixels(torch.Size([25, 256, 6, 6]), (256, 256, 3, 3), cpu)
    assert not has_few_pixels(torch.Size([25, 512, 3, 3]), (512, 512, 3, 3), torch.device("meta"))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("few", [True, False])
def test_a_graph_uses_them_for_all_forms(stride: int, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The forms are forward, backward, and transposed, as in second derivatives."""
    monkeypatch.setattr(few_pixels, "_LARGE_KERNEL", 4 * 3 * 9 + (not few))
    x, kernel = noise(2, 3, 5, 5, seed=0), noise(4, 3, 3, 3, seed=1)
    strides, ones = [stride, stride], [1, 1]
    g = noise(*F.conv2d(x, kernel, None, stride, 1).shape, seed=2)

    def forms(x: Tensor, kernel: Tensor, g: Tensor) -> tuple[Tensor, ...]:
        outputs = [True, False, False]
        return (
            aten.convolution(x, kernel, None, strides, ones, ones, False, [0, 0], 1),
            aten.convolution_backward(g, x, kernel, None, strides, ones, ones, False, [0, 0], 1, outputs)[0],
            aten.convolution(g, kernel, None, strides, ones, ones, True, [0, 0], 1),
        )

    graph, _ = trace_graph(forms, (x, kernel, g))
    use_products_of_patches(graph.graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    for got, expected in zip(graph(x, kernel, g), forms(x, kernel, g), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    targets = {node.target for node in graph.graph.nodes if node.op == "call_function"}
    assert targets.issuperset(OURS) == few
    assert (aten.convolution.default in targets) != few
