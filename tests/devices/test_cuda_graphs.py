"""Graphs that are traced for an accelerator: what the compiler for CUDA, which cannot run here, would get."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.fx import GraphModule, Node

from device_cases import conv, images_task
from firststep import Conditioning, MetaLearner
from firststep.metagradient.compiler.passes import PREPARE, REWRITE, apply
from firststep.metagradient.compiler.trace import trace_graph
from firststep.metagradient.eager import Cotangents, EagerSteps, StepGradients, StepInput, StepOutput
from firststep.metagradient.objective import Losses, Objective
from firststep.task import Inputs, Targets
from second_device import SECOND

SUPPORT = 6


@pytest.fixture(scope="module")
def graphs() -> list[GraphModule]:
    """Return the graph of a step with its pull-back, and that of the query's gradient."""
    learner = MetaLearner(conv())
    steps = EagerSteps(
        Objective(learner.functional, learner.rule, 2, Conditioning(), Losses()), gram_in_graph=True
    )
    task, mode = images_task(16), FakeTensorMode()

    def there(value: Tensor) -> Tensor:
        return torch.empty(value.shape, dtype=value.dtype, device=SECOND)

    def both(
        start: StepInput, x: Inputs, y: Targets, cotangents: Cotangents, weight: Tensor
    ) -> tuple[StepOutput, StepGradients]:
        output, saved = steps.forward(start, x, y, save=True)
        assert saved is not None
        return output, steps.pull_back(saved, cotangents, weight)

    with mode:
        params = {name: there(value) for name, value in learner.functional.params().items()}
        cotangents = Cotangents({name: torch.empty_like(value) for name, value in params.items()}, {})
        weight = torch.empty((), dtype=torch.float64, device=SECOND)
        support = there(task.support_x), there(task.support_y)
        query = there(task.query_x), there(task.query_y)
    found = [
        trace_graph(both, (StepInput(params, {}, {}), *support, cotangents, weight))[0],
        trace_graph(steps.query, (params, *query))[0],
    ]
    for graph in found:
        apply((*REWRITE, *PREPARE), graph)
    return found


def tensors(graphs: list[GraphModule]) -> Iterator[tuple[Node, Tensor]]:
    for graph in graphs:
        for node in graph.graph.nodes:
            if isinstance(value := node.meta.get("val"), Tensor):
                yield node, value


def test_nothing_is_on_the_cpu_and_nothing_is_a_constant(graphs: list[GraphModule]) -> None:
    assert not [node for node, value in tensors(graphs) if value.device != SECOND]
    assert not [node for graph in graphs for node in graph.graph.nodes if node.op == "get_attr"]


def test_no_operator_of_ours_has_a_kernel_for_the_cpu_alone(graphs: list[GraphModule]) -> None:
    ours = {str(node.target) for node, _ in tensors(graphs) if str(node.target).startswith("firststep.")}
    assert ours
    for name in ours:
        qualified = f"firststep::{name.split('.')[1]}"
        assert torch._C._dispatch_has_kernel_for_dispatch_key(qualified, "CompositeImplicitAutograd"), name


def test_float64_is_for_the_last_layer_alone(graphs: list[GraphModule]) -> None:
    """No tensor is larger than n x n: the features [n, d], and d < n here, are the only others."""
    large = [node for node, v in tensors(graphs) if v.dtype == torch.float64 and v.numel() > SUPPORT**2]
    assert not large
