"""The pull-back is compiled before the step has run: what the step will save is foretold, and checked."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule

from firststep import build_backbone, maml
from firststep.functional import FunctionalModule
from firststep.metagradient.compiler import compiled, trace


def wrong_strides(value: Tensor) -> Tensor:
    turned = torch.empty(tuple(reversed(value.shape)), dtype=value.dtype)
    return turned.permute(tuple(reversed(range(value.dim()))))


@pytest.mark.parametrize("network", ["conv4", "resnet10"])
@pytest.mark.parametrize("right", [True, False])
def test_a_pull_back_for_other_strides_is_compiled_again(
    monkeypatch: pytest.MonkeyPatch, network: str, right: bool
) -> None:
    options = {"filters": 2} if network == "conv4" else {}
    model = FunctionalModule(build_backbone(network, image_size=32, channels=1, **options))
    images = torch.rand(5, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    received: list[list[Any]] = []

    def arranged(graph: GraphModule, leaves: list[Any]) -> GraphModule:
        received.append(leaves)
        trace._arrange_memory(graph)
        return graph

    foretell = compiled.results_like
    true: list[Tensor] = []

    def foretold(graph: GraphModule, leaves: list[Any]) -> list[Any]:
        true[:] = foretell(graph, leaves)
        return [one if right else wrong_strides(one) for one in true]

    monkeypatch.setattr(compiled, "compile_graph", arranged)
    monkeypatch.setattr(compiled, "results_like", foretold)
    steps = compiled.CompiledSteps(model, maml(0.1), None)
    steps.saved_bytes(model.params(), {}, images, torch.arange(5))
    pull_back, _step, *again = received
    assert len(again) == (0 if right else 1)
    # Its last arguments are what the step saves.
    last = 20
    assert trace.forms((again[0] if again else pull_back)[-last:]) == trace.forms(true[-last:])
    assert any(value.dim() == 4 and not value.is_contiguous() for value in true[-last:])
