"""All images that the compiler stores have their channels innermost, those of pooling included.

The test reads the compiler's plan and compiles no C++.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.graph import GraphLowering
from torch._inductor.ir import ComputedBuffer
from torch.fx import GraphModule

from firststep import maml
from firststep.backbones import BatchStatisticsNorm
from firststep.functional import FunctionalModule
from firststep.metagradient.compiler import compiled, trace
from firststep.metagradient.eager import StepInput
from firststep.metagradient.objective import Objective
from networks import generator

CHANNELS, SIZE, IMAGES = 6, 20, 5


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return buffers of a step and its pull-back, for a network with pooling."""
    found: list[Any] = []
    codegen = GraphLowering.codegen

    def note(self: GraphLowering) -> Any:
        code = codegen(self)
        found.extend(buffer for buffer in self.buffers if isinstance(buffer, ComputedBuffer))
        return code

    def lowered(graph: GraphModule, leaves: list[Any]) -> GraphModule:
        trace.compile_graph(graph, leaves)
        return graph

    monkeypatch.setattr(GraphLowering, "codegen", note)
    monkeypatch.setattr(AsyncCompile, "cpp_pybinding", lambda *_: None)
    monkeypatch.setattr(compiled, "compile_graph", lowered)
    monkeypatch.setattr(compiled, "start_cpp_compiler", lambda _: None)
    one = [nn.Conv2d(3, CHANNELS, 3, padding=1), BatchStatisticsNorm(CHANNELS), nn.MaxPool2d(2), nn.ReLU()]
    two = [
        nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(CHANNELS, 5),
    ]
    model = FunctionalModule(nn.Sequential(*one, *two))
    images = torch.randn(IMAGES, 3, SIZE, SIZE, generator=generator(0))
    steps = compiled.CompiledSteps(Objective(model, maml(0.1)))
    # With inductor's own patch: monkeypatch cannot restore its settings.
    with torch._inductor.config.patch(force_disable_caches=True):
        assert steps.saved_bytes(StepInput(model.params(), {}, {}), images, torch.arange(IMAGES))
    return found


@pytest.mark.slow
def test_channels_are_innermost(planned: list[Any]) -> None:
    seen = 0
    for buffer in planned:
        shape, strides = map(list, (buffer.get_size(), buffer.get_stride()))
        if (
            len(shape) == 4
            and shape[0] == IMAGES
            and CHANNELS in shape[1:]
            and shape[1:].count(CHANNELS) == 1
        ):
            seen += 1
            assert strides[shape.index(CHANNELS, 1)] == 1, (buffer.get_name(), shape, strides)
    assert seen
