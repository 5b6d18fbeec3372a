"""Means of unpooled values equal means over the entries that are not zero."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.metagradient.compiler.pooled_means import take_means_before_unpooling
from firststep.metagradient.compiler.pooling import fuse_pooling
from firststep.metagradient.compiler.trace import trace_graph
from networks import generator

UNPOOL = torch.ops.firststep.unpool_2x2.default


def noise(*shape: int, seed: int, channels_last: bool = False) -> Tensor:
    values = torch.randn(shape, generator=generator(seed), dtype=torch.float64)
    return values.to(memory_format=torch.channels_last) if channels_last else values


def means(images: Tensor, values: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return means of the backward pass of pooling for values [n, ...], or [rows, n, ...]."""
    pooled, indices = F.max_pool2d(images, 2, return_indices=True)
    flat = values.reshape(-1, *pooled.shape[1:])
    every = [
        part.expand(values.shape[:-3] + part.shape[1:]).reshape(-1, *part.shape[1:])
        for part in (images, indices)
    ]
    back = torch.ops.aten.max_pool2d_with_indices_backward(
        flat, every[0], [2, 2], [2, 2], [0, 0], [1, 1], False, every[1]
    ).reshape(*values.shape[:-3], *images.shape[1:])
    dims = [back.dim() - 4, back.dim() - 2, back.dim() - 1]
    return back.mean(dims), (back * other).mean(dims), (other * back).mean(dims)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("size", [(6, 4), (5, 7)], ids=["even", "odd"])
@pytest.mark.parametrize("rows", [(), (4,)], ids=["one batch", "several"])
def test_means_are_the_same_and_nothing_is_unpooled(
    rows: tuple[int, ...], size: tuple[int, int], channels_last: bool
) -> None:
    images = noise(3, 2, *size, seed=0, channels_last=channels_last)
    values = noise(*rows, 3, 2, size[0] // 2, size[1] // 2, seed=1)
    other = noise(3, 2, *size, seed=2, channels_last=channels_last)
    graph, _ = trace_graph(means, (images, values, other))
    expected = graph(images, values, other)
    fuse_pooling(graph.graph)
    take_means_before_unpooling(graph.graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    assert not any(node.target is UNPOOL for node in graph.graph.nodes)
    for got, value in zip(graph(images, values, other), expected, strict=True):
        torch.testing.assert_close(got, value, rtol=1e-12, atol=1e-12)


def unpooled(images: Tensor, values: Tensor) -> Tensor:
    _, indices = F.max_pool2d(images, 2, return_indices=True)
    back: Tensor = torch.ops.aten.max_pool2d_with_indices_backward(
        values, images, [2, 2], [2, 2], [0, 0], [1, 1], False, indices
    )
    return back


def squares(images: Tensor, values: Tensor) -> Tensor:
    back = unpooled(images, values)
    return (back * back).mean((0, 2, 3))


@pytest.mark.parametrize(
    ("function", "shortened"),
    [
        (squares, False),
        (lambda images, values: unpooled(images, values).mean((2, 3)), False),
        (lambda images, values: unpooled(images, values).mean((0, 2, 3), keepdim=True), False),
        (lambda images, values: (unpooled(images, values) * 2).mean((0, 2, 3)), False),
        (lambda images, values: unpooled(images, values).mean((0, 2, 3)), True),
    ],
    ids=["squares", "other dimensions", "dimensions saved", "a number", "plain"],
)
def test_other_means_are_not_changed(function: Callable[[Tensor, Tensor], Tensor], shortened: bool) -> None:
    images, values = noise(3, 2, 4, 4, seed=0), noise(3, 2, 2, 2, seed=1)
    graph, _ = trace_graph(function, (images, values))
    (expected,) = graph(images, values)
    fuse_pooling(graph.graph)
    take_means_before_unpooling(graph.graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    (got,) = graph(images, values)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    assert shortened != any(node.target is UNPOOL for node in graph.graph.nodes)
