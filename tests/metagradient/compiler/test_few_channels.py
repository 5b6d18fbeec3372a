"""The convolution of images with few channels equals torch's, for any number of threads."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from firststep.metagradient.compiler.few_channels import few_channels_convolution, use_few_channels
from firststep.metagradient.compiler.trace import trace_graph
from firststep.network import using_threads
from networks import generator

OURS = torch.ops.firststep.few_channels_convolution.default

pytestmark = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="our routine is for processors with AVX2 or AVX-512",
)


def noise(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


@given(
    n=st.integers(1, 4),
    height=st.integers(1, 20),
    width=st.integers(1, 20),
    channels_and_stride=st.sampled_from([(1, 1), (1, 2), (2, 1), (3, 1), (3, 2), (4, 1), (1, 3), (2, 3)]),
    outputs=st.sampled_from([32, 64, 96]),
    entries=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    padding=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    biased=st.booleans(),
    threads=st.integers(2, 5),
)
@settings(max_examples=60, deadline=None)
def test_the_convolution_equals_torch(
    n: int,
    height: int,
    width: int,
    channels_and_stride: tuple[int, int],
    outputs: int,
    entries: tuple[int, int],
    padding: tuple[int, int],
    biased: bool,
    threads: int,
) -> None:
    channels, stride = channels_and_stride
    x = noise(n, channels, max(height, entries[0]), max(width, entries[1]), seed=0)
    kernel, bias = noise(outputs, channels, *entries, seed=1), noise(outputs, seed=2) if biased else None

    def ours() -> Tensor:
        return few_channels_convolution(x, kernel, bias, [stride, stride], list(padding))

    with using_threads(1):
        alone = ours()
    torch.testing.assert_close(alone, F.conv2d(x, kernel, bias, stride, padding), rtol=1e-12, atol=1e-12)
    with using_threads(threads):
        assert torch.equal(ours(), alone)


@pytest.mark.parametrize(
    ("channels", "outputs", "stride", "taken"),
    [(3, 64, 1, True), (3, 32, 2, True), (5, 32, 1, False), (3, 48, 1, False), (3, 32, 3, False)],
)
def test_a_graph_uses_it_where_it_applies(channels: int, outputs: int, stride: int, taken: bool) -> None:
    arguments = (
        noise(2, channels, 7, 6, seed=0),
        noise(outputs, channels, 3, 3, seed=1),
        noise(outputs, seed=2),
    )

    def function(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        return F.conv2d(x, kernel, bias, stride, 1)

    graph, _ = trace_graph(function, arguments)
    use_few_channels(graph.graph)
    graph.recompile()
    assert taken == any(node.target is OURS for node in graph.graph.nodes)
    torch.testing.assert_close(graph(*arguments)[0], function(*arguments), rtol=1e-12, atol=1e-12)
