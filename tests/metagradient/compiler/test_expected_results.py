"""The pull-back is compiled for predicted saved tensors, and compiled again if the prediction is wrong."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule

from firststep import build_backbone, maml
from firststep.functional import FunctionalModule
from firststep.metagradient.compiler import compiled, trace
from firststep.metagradient.compiler.passes import PREPARE, apply
from firststep.metagradient.eager import StepInput
from firststep.metagradient.objective import Objective


def wrong_strides(value: Tensor) -> Tensor:
    reversed_axes = torch.empty(tuple(reversed(value.shape)), dtype=value.dtype)
    return reversed_axes.permute(tuple(reversed(range(value.dim()))))


@pytest.mark.parametrize("network", ["conv4", "resnet10"])
@pytest.mark.parametrize("right", [True, False])
def test_a_pull_back_for_wrong_strides_is_compiled_again(
    monkeypatch: pytest.MonkeyPatch, network: str, right: bool
) -> None:
    options = {"filters": 2} if network == "conv4" else {}
    model = FunctionalModule(build_backbone(network, image_size=32, channels=1, **options))
    images = torch.rand(5, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    received: list[list[Any]] = []

    def prepared(graph: GraphModule, leaves: list[Any]) -> GraphModule:
        received.append(leaves)
        apply(PREPARE, graph)
        return graph

    predict = compiled.expected_results
    true: list[Tensor] = []

    def predicted(graph: GraphModule, leaves: list[Any]) -> list[Any]:
        true[:] = predict(graph, leaves)
        return [one if right else wrong_strides(one) for one in true]

    monkeypatch.setattr(compiled, "compile_graph", prepared)
    monkeypatch.setattr(compiled, "expected_results", predicted)
    steps = compiled.CompiledSteps(Objective(model, maml(0.1)))
    steps.saved_bytes(StepInput(model.params(), {}, {}), images, torch.arange(5))
    pull_back, _step, *again = received
    assert len(again) == (0 if right else 1)
    # The last arguments of the pull-back are the saved tensors.
    last = 20
    found = (again[0] if again else pull_back)[-last:]
    assert trace.tensor_forms(found) == trace.tensor_forms(true[-last:])
    assert any(value.dim() == 4 and not value.is_contiguous() for value in true[-last:])
