"""Recorded graphs: fast kernels compute the same, and the halves of a cut graph make the whole."""

from __future__ import annotations

import pytest
import torch

from firststep import Conditioning, FunctionalModule, maml
from firststep.metagradient.channels import channels_innermost
from firststep.metagradient.recording import flat, record
from firststep.metagradient.rewrite import use_fast_kernels
from firststep.metagradient.split import split
from firststep.metagradient.steps import EagerSteps
from networks import small_conv, small_resnet, small_task


@pytest.mark.parametrize("network", [small_conv, small_resnet])
@pytest.mark.parametrize("innermost", [False, True])
def test_rewritten_and_cut_graphs_compute_the_same(network: object, innermost: bool) -> None:
    model, task = FunctionalModule(network()), small_task(size=22)  # type: ignore[operator]
    if network is small_conv:
        task = small_task()
    images = channels_innermost(task.support_x) if innermost else task.support_x
    steps, params = EagerSteps(model, maml(0.2), Conditioning()), model.params()
    cotangents = {name: torch.ones_like(value) for name, value in params.items()}

    def both(*arguments: object) -> object:
        stepped, kept = steps.forward(*arguments[:4], keep=True)  # type: ignore[arg-type]
        return stepped, steps.pull_back(kept, *arguments[4:])  # type: ignore[arg-type]

    arguments = (params, {}, images, task.support_y, cotangents, torch.ones((), dtype=torch.float64))
    expected = flat(both(*arguments))
    graph, structure = record(both, arguments)
    use_fast_kernels(graph)
    leaves, stepped = flat(arguments), structure.children()[0].num_leaves
    inputs = len(flat(arguments[:4]))
    halves = split(graph, inputs, stepped)
    first = halves.first(*leaves[:inputs])
    second = halves.second(*leaves, *first[stepped:])
    for result in (graph(*leaves), [*first[:stepped], *second]):
        for got, wanted in zip(result, expected, strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-12)
    names = {str(node.target) for node in graph.graph.nodes}
    assert ("firststep.pick_2x2.default" in names) == (network is small_conv)
