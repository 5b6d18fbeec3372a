"""Kernel gradients equal torch's by every routine, and second derivatives use them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from firststep.metagradient.compiler import kernel_gradients
from firststep.metagradient.compiler.direct_gradient import has_direct_gradient
from firststep.metagradient.compiler.kernel_gradients import (
    use_fast_kernel_gradients,
    use_kernel_gradients_in_second_derivatives,
)
from firststep.metagradient.compiler.passes import apply
from firststep.metagradient.compiler.trace import trace_graph
from networks import generator

aten = torch.ops.aten
PRODUCT = torch.ops.firststep.kernel_gradient.default
PASSES = (use_kernel_gradients_in_second_derivatives, use_fast_kernel_gradients)

needs_direct = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="our routine is for processors with AVX2 or AVX-512",
)


def noise(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


# channels, output channels, kernel, stride, padding, height, width: for all forms of products, with strides
# that skip the last row or column of the images.
SHAPES = [
    (1, 4, 3, 1, 1, 2, 2),
    (3, 5, 3, 1, 1, 9, 7),
    (2, 4, 3, 2, 1, 6, 5),
    (2, 4, 1, 2, 0, 6, 7),
    (3, 4, 7, 2, 3, 11, 8),
    (40, 3, 3, 1, 0, 9, 8),
    (40, 3, 3, 2, 1, 6, 6),
    (64, 65, 3, 1, 1, 20, 21),
    (65, 64, 3, 1, 0, 23, 22),
    (64, 64, 5, 1, 2, 20, 20),
    (64, 64, 1, 1, 0, 20, 21),
    (64, 64, 3, 1, 2, 20, 21),
    # direct_gradient, with whole and with partial tiles
    (1, 16, 3, 1, 1, 2, 2),
    (2, 80, 3, 1, 1, 9, 7),
    (3, 112, 7, 2, 3, 11, 8),
    (7, 48, 3, 2, 1, 6, 5),
    (13, 32, 1, 2, 0, 6, 7),
    (17, 16, 5, 1, 2, 1, 2),
    (6, 16, 3, 3, 0, 50, 3),
    # too many entries for direct_gradient
    (120, 496, 3, 1, 1, 20, 20),
    (32, 64, 3, 1, 1, 5, 6),  # winograd
    (360, 328, 3, 1, 1, 3, 2),  # few pixels, a large kernel
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_the_kernel_gradient_equals_torch(shape: tuple[int, ...], order: torch.memory_format) -> None:
    channels, out, size, stride, padding, height, width = shape
    images = noise(4, channels, height, width, seed=0).to(memory_format=order)
    kernel = noise(out, channels, size, size, seed=1)
    cotangent = torch.randn_like(F.conv2d(images, kernel, None, stride, padding))
    pairs = ([stride] * 2, [padding] * 2)
    found = PRODUCT(cotangent, images, [size, size], *pairs)
    expected = aten.convolution_backward(
        cotangent, images, kernel, None, *pairs, [1, 1], False, [0, 0], 1, [False, True, False]
    )[1]
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)
    assert found.stride() == kernel.stride()  # otherwise the second step would be compiled again


@needs_direct
@pytest.mark.parametrize(("channels", "out"), [(3, 112), (16, 64)])
def test_the_direct_routine_is_bit_identical_for_any_number_of_threads(channels: int, out: int) -> None:
    images, cotangent = noise(5, channels, 9, 8, seed=0), noise(5, out, 9, 8, seed=1)
    assert has_direct_gradient(cotangent, channels, [3, 3])
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append(PRODUCT(cotangent, images, [3, 3], [1, 1], [1, 1]))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@needs_direct
@settings(max_examples=60)
@given(
    count=st.integers(1, 3),
    channels=st.integers(1, 20),
    out=st.sampled_from([16, 32, 48, 80]),
    size=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    images=st.tuples(st.integers(5, 60), st.integers(5, 60)),
)
def test_the_direct_routine_equals_torch(
    count: int,
    channels: int,
    out: int,
    size: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    images: tuple[int, int],
) -> None:
    x, kernel = noise(count, channels, *images, seed=0), noise(out, channels, *size, seed=1)
    cotangent = noise(*F.conv2d(x, kernel, None, stride, padding).shape, seed=2)
    assert has_direct_gradient(cotangent, channels, list(size))
    found = PRODUCT(cotangent, x, list(size), list(stride), list(padding))
    expected = torch.nn.grad.conv2d_weight(x, list(kernel.shape), cotangent, stride, padding)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


def second_derivative(
    images: Tensor, kernel: Tensor, against: Tensor, stride: int, size: int
) -> list[Tensor]:
    """Return the second derivatives of a convolution in images and kernel, and the first in the bias."""
    with torch.enable_grad():
        leaves = [value.detach().requires_grad_() for value in (images, kernel, kernel.new_ones(len(kernel)))]
        result = F.conv2d(*leaves, stride, size // 2).sin().sum()
        first = torch.autograd.grad(result, leaves, create_graph=True)
        second = torch.autograd.grad((first[0] * against).sum() + first[1].sin().sum(), leaves[:2])
    return [*second, first[2]]


@pytest.mark.parametrize(
    ("channels", "out", "product"), [(1, 4, True), (8, 128, True), (8, 8, False)], ids=["one", "many", "few"]
)
@pytest.mark.parametrize(
    ("size", "stride", "side"), [(3, 1, 5), (3, 2, 5), (3, 2, 6), (1, 2, 6), (1, 2, 7), (1, 1, 4)]
)
def test_second_derivatives_convolve_with_kernels_only(
    channels: int, out: int, product: bool, size: int, stride: int, side: int
) -> None:
    if size == 1 and channels == 8:
        product = product or channels * size * size <= 32
    images, kernel = noise(3, channels, side, side + 1, seed=0), noise(out, channels, size, size, seed=1)
    arguments = (images, kernel, noise(*images.shape, seed=2))

    def function(*arguments: Tensor) -> list[Tensor]:
        return second_derivative(*arguments, stride=stride, size=size)

    expected = function(*arguments)
    graph, _ = trace_graph(function, arguments)
    apply(PASSES, graph)
    for got, value in zip(graph(*arguments), expected, strict=True):
        torch.testing.assert_close(got, value, rtol=1e-11, atol=1e-11)
    for node in graph.graph.nodes:
        if node.target is aten.convolution.default:
            assert node.args[1].meta["val"].shape[2:] == kernel.shape[2:]
            assert node.args[5] == [1, 1]
        if node.target is aten.convolution_backward.default:
            assert node.args[-1][1] is not product
            assert node.args[2].meta["val"].shape[2:] == kernel.shape[2:]
        if node.target is PRODUCT:
            assert node.args[2] == [size, size]
    assert product == any(node.target is PRODUCT for node in graph.graph.nodes)


@pytest.mark.parametrize(
    ("images", "channels", "side", "device", "product"),
    [
        (16, 8, 16, "cpu", True),
        (128, 64, 16, "cpu", False),  # patches of 151 MB
        (16, 8, 16, "meta", False),
        (512, 64, 20, "cpu", True),  # by shifts, without patches
        (1, 64, 20, "meta", False),
    ],
)
def test_large_patches_are_not_made(
    images: int, channels: int, side: int, device: str, product: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for routine in ("has_direct_gradient", "has_winograd"):
        monkeypatch.setattr(kernel_gradients, routine, lambda *_: False)
    values = (images, channels, side, side), (128, channels, 3, 3), (images, 128, side, side)
    arguments = tuple(torch.empty(shape, dtype=torch.float64, device=device) for shape in values)

    def gradient(images: Tensor, kernel: Tensor, cotangent: Tensor) -> Tensor:
        ones = [1, 1]
        outputs = [False, True, False]
        return aten.convolution_backward(
            cotangent, images, kernel, None, ones, ones, ones, False, [0, 0], 1, outputs
        )[1]

    graph, _ = trace_graph(gradient, arguments)
    apply(PASSES, graph)
    assert product == any(node.target is PRODUCT for node in graph.graph.nodes)


def test_a_sliced_kernel_gradient_is_computed_whole() -> None:
    """The first rows of a kernel gradient are not the gradient of a smaller kernel."""

    def rows(images: Tensor, cotangent: Tensor) -> Tensor:
        return F.conv2d(images.transpose(0, 1), cotangent.transpose(0, 1), padding=1)[:, :, :1]

    arguments = (noise(3, 2, 5, 5, seed=0), noise(3, 4, 5, 5, seed=1))
    graph, _ = trace_graph(rows, arguments)
    apply(PASSES, graph)
    torch.testing.assert_close(graph(*arguments)[0], rows(*arguments), rtol=1e-12, atol=1e-12)
    names = {node.target for node in graph.graph.nodes}
    assert aten.convolution.default not in names
