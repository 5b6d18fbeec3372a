"""Winograd convolutions and gradients equal torch's, for any number of threads."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from firststep import Conditioning, Task, maml
from firststep.backbones import Conv
from firststep.functional import EngineOptions, FunctionalModule, MetaGradient
from firststep.metagradient.compiler.torch_internals import tree_flatten
from firststep.metagradient.compiler.trace import trace_graph
from firststep.metagradient.compiler.winograd import use_winograd, winograd_convolution, winograd_gradient
from firststep.network import using_threads
from networks import generator

aten = torch.ops.aten
OURS = torch.ops.firststep.winograd_convolution.default

pytestmark = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="our routine is for processors with AVX2 or AVX-512",
)


def noise(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


def torch_gradients(x: Tensor, kernel: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of the convolution in its images and its kernel, by autograd."""
    x, kernel = x.clone().requires_grad_(), kernel.clone().requires_grad_()
    image, of_kernel = torch.autograd.grad(F.conv2d(x, kernel, padding=1), (x, kernel), g)
    return image, of_kernel


@given(
    n=st.integers(1, 5),
    height=st.integers(1, 11),
    width=st.integers(1, 11),
    channels=st.sampled_from([32, 64, 96]),
    outputs=st.sampled_from([32, 64, 96]),
    last=st.booleans(),
    threads=st.integers(1, 9),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_all_three_forms_equal_torch(
    n: int, height: int, width: int, channels: int, outputs: int, last: bool, threads: int, seed: int
) -> None:
    """Equal to torch up to rounding in float64, and bit-identical for any number of threads."""
    order = torch.channels_last if last else torch.contiguous_format
    x = noise(n, channels, height, width, seed=seed).contiguous(memory_format=order)
    g = noise(n, outputs, height, width, seed=seed + 1).contiguous(memory_format=order)
    kernel = noise(outputs, channels, 3, 3, seed=seed + 2).contiguous(memory_format=order)
    bias = noise(outputs, seed=seed + 3)
    image_gradient, kernel_gradient = torch_gradients(x, kernel, g)

    def ours() -> list[Tensor]:
        return [
            winograd_convolution(x, kernel, bias, transposed=False),
            winograd_convolution(x, kernel, None, transposed=False),
            winograd_convolution(g, kernel, None, transposed=True),
            winograd_gradient(g, x),
        ]

    plain = F.conv2d(x, kernel, padding=1)
    references = [plain + bias[:, None, None], plain, image_gradient, kernel_gradient]
    with using_threads(1):
        alone = ours()
    for got, expected in zip(alone, references, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-11)
    with using_threads(threads):
        for got, same in zip(ours(), alone, strict=True):
            assert torch.equal(got, same)


@pytest.mark.parametrize("size", [42, 21, 6])
def test_float32_is_about_as_accurate_as_sums_of_products(size: int) -> None:
    channels = 256 if size == 6 else 64
    x, g = (noise(10, channels, size, size, seed=seed) for seed in (0, 1))
    kernel = noise(channels, channels, 3, 3, seed=2) / (3 * channels**0.5)
    references = [F.conv2d(x, kernel, padding=1), *torch_gradients(x, kernel, g)]
    a, b, c = x.float(), kernel.float(), g.float()
    usual = [F.conv2d(a, b, padding=1), *torch_gradients(a, b, c)]
    ours = [winograd_convolution(a, b, None, False), winograd_convolution(c, b, None, True)]
    for got, theirs, expected in zip([*ours, winograd_gradient(c, a)], usual, references, strict=True):
        error, their_error = ((one - expected).norm() / expected.norm() for one in (got, theirs))
        assert error < 5 * their_error + 1e-7
        assert error < 3e-6


def convolution(stride: int = 1, padding: int = 1, dilation: int = 1, groups: int = 1) -> list[object]:
    return [None, [stride] * 2, [padding] * 2, [dilation] * 2, False, [0, 0], groups]


@pytest.mark.parametrize(
    ("channels", "outputs", "size", "rest", "taken"),
    [
        (32, 64, 3, convolution(), True),
        (64, 32, 3, [None, [1, 1], [1, 1], [1, 1], True, [0, 0], 1], True),
        (16, 64, 3, convolution(), False),
        (64, 48, 3, convolution(), False),
        (32, 32, 3, convolution(stride=2), False),
        (32, 32, 3, convolution(padding=0), False),
        (32, 32, 3, convolution(padding=2, dilation=2), False),
        (64, 64, 3, convolution(groups=2), False),
        (32, 32, 5, convolution(padding=2), False),
        (32, 32, 1, convolution(padding=0), False),
    ],
)
def test_a_graph_uses_it_where_it_applies(
    channels: int, outputs: int, size: int, rest: list[object], taken: bool
) -> None:
    transposed, groups = rest[4], rest[6]
    assert isinstance(groups, int)
    sides = (channels, outputs) if transposed else (outputs, channels // groups)
    arguments = noise(2, channels, 7, 6, seed=0), noise(*sides, size, size, seed=1)

    def function(x: Tensor, kernel: Tensor) -> Tensor:
        return aten.convolution(x, kernel, *rest)

    graph, _ = trace_graph(function, arguments)
    use_winograd(graph.graph)
    graph.recompile()
    assert taken == any(node.target is OURS for node in graph.graph.nodes)
    torch.testing.assert_close(graph(*arguments)[0], function(*arguments), rtol=1e-11, atol=1e-11)


def test_a_graph_uses_it_for_image_gradients() -> None:
    arguments = noise(2, 32, 7, 6, seed=0), noise(64, 32, 3, 3, seed=1), noise(2, 64, 7, 6, seed=2)

    def gradient(x: Tensor, kernel: Tensor, g: Tensor) -> Tensor:
        ones = [1, 1]
        outputs = [True, False, False]
        return aten.convolution_backward(g, x, kernel, None, ones, ones, ones, False, [0, 0], 1, outputs)[0]

    graph, _ = trace_graph(gradient, arguments)
    use_winograd(graph.graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    assert [node.target for node in graph.graph.nodes if node.op == "call_function"] == [OURS]
    torch.testing.assert_close(graph(*arguments)[0], gradient(*arguments), rtol=1e-11, atol=1e-11)


@pytest.mark.slow
def test_a_compiled_meta_gradient_with_it_is_exact() -> None:
    """Compile 32 filters with the real C++ and compare with the uncompiled meta-gradient."""
    model = FunctionalModule(
        Conv(2, ways=3, filters=32, channels=1, image_size=8, generator=generator()).double()
    )
    x, labels = noise(6, 1, 8, 8, seed=0), torch.arange(3).repeat(2)
    task = Task(x, labels, noise(6, 1, 8, 8, seed=1), labels)
    found = [
        MetaGradient(
            model, maml(0.2), steps=2, conditioning=Conditioning(), options=EngineOptions(compile=compile)
        )(model.params(), {}, [task])
        for compile in (True, False)
    ]
    compiled, plain = (tree_flatten(one.params)[0] for one in found)
    for got, expected in zip(compiled, plain, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11)
