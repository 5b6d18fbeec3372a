"""The passes keep what a graph computes, and the two parts of a split graph compute the whole."""

from __future__ import annotations

import pytest
import torch

from firststep import Conditioning, maml
from firststep.functional import FunctionalModule
from firststep.metagradient.compiler.compiled import to_channels_last
from firststep.metagradient.compiler.partition import partition
from firststep.metagradient.compiler.passes import CLEAN_UP, PREPARE, REWRITE, ROUTINES, apply
from firststep.metagradient.compiler.trace import flatten, trace_graph
from firststep.metagradient.eager import Cotangents, EagerSteps, StepInput
from firststep.metagradient.objective import Objective
from networks import small_conv, small_resnet, small_task


@pytest.mark.parametrize("network", [small_conv, small_resnet])
@pytest.mark.parametrize("channels_last", [False, True])
def test_rewritten_and_split_graphs_compute_the_same(network: object, channels_last: bool) -> None:
    model, task = FunctionalModule(network()), small_task(size=22)  # type: ignore[operator]
    if network is small_conv:
        task = small_task()
    images = to_channels_last(task.support_x) if channels_last else task.support_x
    steps, params = EagerSteps(Objective(model, maml(0.2), conditioning=Conditioning())), model.params()
    cotangents = Cotangents({name: torch.ones_like(value) for name, value in params.items()}, {})

    def both(*arguments: object) -> object:
        output, saved = steps.forward(*arguments[:3], save=True)  # type: ignore[arg-type]
        return output, steps.pull_back(saved, *arguments[3:])  # type: ignore[arg-type]

    start = StepInput(params, {}, {})
    arguments = (start, images, task.support_y, cotangents, torch.ones((), dtype=torch.float64))
    expected = flatten(both(*arguments))
    graph, _ = trace_graph(both, arguments)
    apply(REWRITE, graph)
    leaves, outputs = flatten(arguments), len(flatten(steps.forward(*arguments[:3], save=False)[0]))
    inputs = len(flatten(arguments[:3]))
    parts = partition(graph, inputs, outputs)
    forward = parts.forward(*leaves[:inputs])
    backward = parts.backward(*leaves, *forward[outputs:])
    for result in (graph(*leaves), [*forward[:outputs], *backward]):
        for got, value in zip(result, expected, strict=True):
            torch.testing.assert_close(got, value, rtol=1e-9, atol=1e-12)
    names = {str(node.target) for node in graph.graph.nodes}
    assert ("firststep.gather_2x2.default" in names) == (network is small_conv)


def test_every_pass_has_one_place_and_a_purpose_of_one_line() -> None:
    passes = [*CLEAN_UP, *REWRITE, *PREPARE]
    assert len(set(passes)) == len(passes)
    assert PREPARE[-len(ROUTINES) :] == ROUTINES
    for one in passes:
        (purpose,) = (one.__doc__ or "").splitlines()  # the documentation's table and diagram show it
        assert purpose.endswith(".")


def test_equal_operations_are_merged_in_place() -> None:
    def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.sin().detach().cos() * 2, x.sin().cos() + 1

    x = torch.linspace(0, 1, 5)
    graph, _ = trace_graph(twice, (x,))
    names = [str(node.target) for node in graph.graph.nodes]
    assert names.count("aten.sin.default") == names.count("aten.cos.default") == 1
    assert "aten.detach.default" not in names
    for got, value in zip(graph(x), twice(x), strict=True):
        torch.testing.assert_close(got, value)
