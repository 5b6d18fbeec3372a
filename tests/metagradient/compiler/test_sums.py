"""Sums in two stages equal sums in one. The first stage covers a small image, or a row of a large one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.fx import GraphModule

from firststep.metagradient.compiler.sums import sum_in_two_stages
from firststep.metagradient.compiler.trace import trace_graph
from networks import generator

SUM = torch.ops.aten.sum.dim_IntList


def traced(images: Tensor, function: object) -> GraphModule:
    graph, _ = trace_graph(function, (images,))  # type: ignore[arg-type]
    sum_in_two_stages(graph.graph)
    graph.graph.lint()
    graph.recompile()
    return graph


def noise(*shape: int) -> Tensor:
    values = torch.randn(shape, generator=generator(0), dtype=torch.float64)
    return values.to(memory_format=torch.channels_last)


def stages(graph: GraphModule) -> list[list[int]]:
    return [node.args[1] for node in graph.graph.nodes if node.target is SUM]


@given(st.tuples(*[st.integers(1, 5)] * 2, *[st.integers(1, 40)] * 2))
def test_two_stages_equal_one(shape: tuple[int, int, int, int]) -> None:
    def both(images: Tensor) -> tuple[Tensor, Tensor]:
        return images.sum((0, 2, 3)), (2 * images).mean((0, 2, 3))

    images = noise(*shape)
    graph = traced(images, both)
    total, mean = graph(images)
    torch.testing.assert_close(total, images.sum((0, 2, 3)), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(mean, 2 * images.mean((0, 2, 3)), rtol=1e-12, atol=1e-12)
    assert len(stages(graph)) == 4


@pytest.mark.parametrize(
    ("size", "expected"), [(8, [[2, 3], [0]]), (84, [[3], [0, 2]])], ids=["whole images", "rows"]
)
def test_the_first_stage_fits_into_the_cache(size: int, expected: list[list[int]]) -> None:
    assert stages(traced(noise(3, 16, size, size), lambda images: images.mean((0, 2, 3)))) == expected


def test_other_sums_are_not_changed() -> None:
    def others(images: Tensor) -> tuple[Tensor, ...]:
        return (
            images.sum((2, 3)),
            images.sum((0, 2, 3), keepdim=True),
            images[0].sum((0, 1, 2)),
            images.sum((0, 1, 2)),
        )

    images = noise(2, 3, 4, 5)
    graph = traced(images, others)
    assert stages(graph) == [[2, 3], [0, 2, 3], [0, 1, 2], [0, 1, 2]]
    for got, expected in zip(graph(images), others(images), strict=True):
        torch.testing.assert_close(got, expected)
