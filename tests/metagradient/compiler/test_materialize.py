"""Storing results for the compiler changes no number, only where and in which order they are stored."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep import maml
from firststep.functional import FunctionalModule
from firststep.metagradient.compiler.compiled import to_channels_last
from firststep.metagradient.compiler.materialize import materialize
from firststep.metagradient.compiler.passes import REWRITE, apply
from firststep.metagradient.compiler.trace import flatten, trace_graph
from firststep.metagradient.eager import EagerSteps
from firststep.metagradient.objective import Objective
from networks import generator, small_conv, small_task


def stored(graph: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in graph.graph.nodes if "force_stride_order" in str(node.target)]


def test_a_graph_with_stored_results_computes_the_same() -> None:
    model, task = FunctionalModule(small_conv()), small_task()
    arguments = (model.params(), to_channels_last(task.query_x), task.query_y)
    graph, _ = trace_graph(EagerSteps(Objective(model, maml(0.1))).query, arguments)
    apply(REWRITE, graph)
    expected = graph(*flatten(arguments))
    apply([materialize], graph)
    for got, value in zip(graph(*flatten(arguments)), expected, strict=True):
        torch.testing.assert_close(got, value, rtol=1e-12, atol=1e-14)
    assert stored(graph)
    for node in graph.graph.nodes:
        if node.target is torch.ops.aten.convolution_backward.default:
            images = node.args[0]
            assert images in stored(graph)
            assert images.args[1][1] == 1  # the stride of the channels


def test_numbers_per_channel_are_stored_and_images_are_not() -> None:
    def scaled(images: Tensor, weight: Tensor) -> Tensor:
        scale = weight * torch.rsqrt(images.var((0, 2, 3)) + 1)
        return F.relu(images * scale[:, None, None]) + 1

    images = torch.randn(4, 3, 8, 8, generator=generator(0))
    graph, _ = trace_graph(scaled, (images, torch.ones(3)))
    expected = graph(images, torch.ones(3))
    apply([materialize], graph)
    (node,) = stored(graph)
    assert tuple(node.meta["val"].shape) == (3,)
    torch.testing.assert_close(graph(images, torch.ones(3)), expected)
