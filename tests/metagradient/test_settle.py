"""What is written to memory for the compiler changes nothing but where and in which order."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep import FunctionalModule, maml
from firststep.metagradient.channels import channels_innermost
from firststep.metagradient.recording import flat, record
from firststep.metagradient.rewrite import use_fast_kernels
from firststep.metagradient.settle import settle
from firststep.metagradient.steps import EagerSteps
from networks import generator, small_conv, small_task


def settled(graph: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in graph.graph.nodes if "force_stride_order" in str(node.target)]


def test_a_settled_graph_computes_the_same() -> None:
    model, task = FunctionalModule(small_conv()), small_task()
    arguments = (model.params(), channels_innermost(task.query_x), task.query_y)
    graph, _ = record(EagerSteps(model, maml(0.1), None).query, arguments)
    use_fast_kernels(graph)
    expected = graph(*flat(arguments))
    settle(graph)
    for got, wanted in zip(graph(*flat(arguments)), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-14)
    assert settled(graph)
    for node in graph.graph.nodes:
        if node.target is torch.ops.aten.convolution_backward.default:
            pictures = node.args[0]
            assert pictures in settled(graph)
            assert pictures.args[1][1] == 1  # the stride of the channels


def test_numbers_per_channel_are_settled_and_pictures_are_not() -> None:
    def scaled(images: Tensor, weight: Tensor) -> Tensor:
        scale = weight * torch.rsqrt(images.var((0, 2, 3)) + 1)
        return F.relu(images * scale[:, None, None]) + 1

    images = torch.randn(4, 3, 8, 8, generator=generator(0))
    graph, _ = record(scaled, (images, torch.ones(3)))
    expected = graph(images, torch.ones(3))
    settle(graph)
    (node,) = settled(graph)
    assert tuple(node.meta["val"].shape) == (3,)
    torch.testing.assert_close(graph(images, torch.ones(3)), expected)
