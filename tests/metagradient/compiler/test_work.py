"""Counts of the work in compiled graphs, the same on every machine, so that slower graphs are noticed.

They count the floating-point operations of convolutions, in units of the network's forward pass, and the
bytes that a step saves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
import torch
from torch.fx import GraphModule, Node

from firststep import Conditioning, build_backbone, maml
from firststep.functional import FunctionalModule
from firststep.losses import cross_entropy
from firststep.metagradient.compiler import compiled, rows
from firststep.metagradient.eager import StepInput
from firststep.metagradient.objective import Objective
from firststep.metagradient.stepwise import DEFAULT_MEMORY, MOST_SAVED
from networks import generator

aten = torch.ops.aten
SUMS = (aten.mean.dim, aten.sum.dim_IntList)
PRODUCT = torch.ops.firststep.kernel_gradient.default


class Graphs(NamedTuple):
    step: GraphModule
    pull_back: GraphModule
    saved_bytes: int


@pytest.fixture(scope="module", params=["conv4", "resnet10"])
def graphs(request: pytest.FixtureRequest) -> tuple[FunctionalModule, Graphs]:
    """Return the graphs for 5 images of 84 px as the compiler gets them."""
    model = FunctionalModule(build_backbone(request.param, image_size=84, channels=3))
    images = torch.randn(5, 3, 84, 84, generator=generator(0))
    found: list[GraphModule] = []
    steps = compiled.CompiledSteps(Objective(model, maml(0.1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "compile_graph", lambda graph, _: found.append(graph) or graph)
        saved = steps.saved_bytes(StepInput(model.params(), {}, {}), images, torch.arange(5))
    pull_back, step = found[:2]
    return model, Graphs(step, pull_back, saved)


def operations(node: Node) -> int:
    """Return the multiplications and additions of a convolution or its gradients; 0 for other nodes."""
    if node.target is aten.convolution.default:
        transposed = node.args[6]
        pixels = (node.args[0] if transposed else node).meta["val"]
        return 2 * pixels.numel() * math.prod(node.args[1].meta["val"].shape[1:])
    if node.target is aten.convolution_backward.default:
        one = 2 * node.args[0].meta["val"].numel() * math.prod(node.args[2].meta["val"].shape[1:])
        return one * sum(node.args[-1][:2])
    if node.target is PRODUCT:
        channels = node.args[1].meta["val"].shape[1]
        return 2 * node.args[0].meta["val"].numel() * channels * math.prod(node.args[2])
    return 0


def total(graph: GraphModule) -> int:
    return sum(map(operations, graph.graph.nodes))


def test_a_step_and_its_pull_back_are_nine_forward_passes_of_convolution(
    graphs: tuple[FunctionalModule, Graphs],
) -> None:
    """The first layer takes four, because its images are constants."""
    _, (step, pull_back, _) = graphs
    forward = [operations(node) for node in step.graph.nodes if node.target is aten.convolution.default]
    assert total(step) == 3 * sum(forward) - forward[0]
    assert total(pull_back) == 6 * sum(forward) - 4 * forward[0]


def test_no_images_are_convolved_with_images(graphs: tuple[FunctionalModule, Graphs]) -> None:
    model, (step, pull_back, _) = graphs
    kernels = {tuple(value.shape[2:]) for value in model.params().values() if value.dim() == 4}
    for node in (*step.graph.nodes, *pull_back.graph.nodes):
        if node.target is aten.convolution.default:
            assert tuple(node.args[1].meta["val"].shape[2:]) in kernels


@pytest.mark.parametrize("graphs", ["conv4"], indirect=True)
def test_large_images_are_summed_per_channel_three_times_per_part(
    graphs: tuple[FunctionalModule, Graphs],
) -> None:
    """Two sums are batch norm's, the statistics or their counterparts in the backward pass; one is the bias.

    All others are over the quarter of the entries that pooling takes.
    """
    _, (step, pull_back, _) = graphs
    for part in (step, pull_back):
        sums = [node.args[0].meta["val"].shape for node in part.graph.nodes if node.target in SUMS]
        assert sum(list(shape) == [5, 64, 84, 84] for shape in sums) == 3


@pytest.mark.parametrize("graphs", ["conv4"], indirect=True)
def test_five_steps_of_the_usual_size_fit_into_the_default_memory(
    graphs: tuple[FunctionalModule, Graphs],
) -> None:
    """Conv4-64 at 84 px with 25 images. Saved bytes grow with the images, except a few per channel."""
    _, (_, _, saved) = graphs
    assert MOST_SAVED * 5 * saved <= DEFAULT_MEMORY


class RowGraphs(NamedTuple):
    shared: GraphModule
    row: GraphModule
    pull_back: GraphModule
    finish: GraphModule


@pytest.fixture(scope="module", params=["conv4", "resnet10"])
def row_graphs(request: pytest.FixtureRequest) -> RowGraphs:
    """Return the graphs of conditioning on all parameters, for 5 images of 32 px."""
    model = FunctionalModule(build_backbone(request.param, image_size=32, channels=3))
    images = torch.randn(5, 3, 32, 32, generator=generator(0)).to(memory_format=torch.channels_last)
    found: list[GraphModule] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "compile_graph", lambda graph, _: found.append(graph) or graph)
        rows.CompiledRows(
            model, Conditioning(subset="all"), cross_entropy, model.params(), images, torch.arange(5), 5
        )
    return RowGraphs(*found)


def test_a_row_is_a_backward_pass_and_its_second_derivative(row_graphs: RowGraphs) -> None:
    """The counts of benchmarks/roofline.py. The passes before and after the rows run once."""
    forward = [operations(node) for node in row_graphs.shared.graph.nodes if operations(node)]
    whole, first = sum(forward), forward[0]
    assert total(row_graphs.row) == 2 * whole - first
    assert total(row_graphs.pull_back) == 4 * whole - 3 * first
    assert total(row_graphs.finish) == 2 * whole - first


@pytest.mark.parametrize("row_graphs", ["conv4"], indirect=True)
def test_rows_add_to_one_total_per_value_of_the_network(row_graphs: RowGraphs) -> None:
    """Rows add once to the images before each batch norm and before each convolution."""
    graph = row_graphs.pull_back.graph
    totals = [node.meta["val"].shape for node in graph.nodes if node.target is aten.copy_.default]
    images = [shape[-1] for shape in totals if len(shape) == 4 and shape[0] == 5]
    assert images == [32, 16, 16, 8, 8, 4, 4]
    assert len(totals) <= 20  # every row reads and writes each total
