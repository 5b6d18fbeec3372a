"""Compiled steps and pull-backs: the same numbers, one compilation for any K, a clean fallback."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch._inductor
from torch.fx import GraphModule

from firststep import Conditioning, Task, build_method, maml
from firststep.functional import EngineOptions, FunctionalModule, MetaGradient
from firststep.metagradient.compiler import compiled, rows
from firststep.metagradient.compiler.trace import Function
from networks import perturbed_rule_params, shallow_conv, shallow_task, small_conv, small_task
from reference import total_error


def engine(model: FunctionalModule, steps: int, subset: str = "cls", compile: bool = True) -> MetaGradient:
    return MetaGradient(
        model,
        maml(0.2),
        steps=steps,
        conditioning=Conditioning(subset=subset),
        options=EngineOptions(compile=compile),
    )


def test_same_numbers_and_three_compilations_for_several_steps_and_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compilations = []
    compile_graph = torch._inductor.compile
    monkeypatch.setattr(
        torch._inductor, "compile", lambda *a, **k: compilations.append(1) or compile_graph(*a, **k)
    )
    model, tasks = FunctionalModule(shallow_conv()), [shallow_task(seed=seed) for seed in (5, 6)]
    steps = 3
    expected = engine(model, steps, compile=False)(model.params(), {}, tasks)
    result = engine(model, steps)(model.params(), {}, tasks)
    assert total_error(result.params, expected.params) < 1e-10
    torch.testing.assert_close(result.loss, expected.loss)
    for got, report in zip(result.tasks, expected.tasks, strict=True):
        torch.testing.assert_close(got.condition_numbers, report.condition_numbers)
    assert len(compilations) == 3  # the step, the query gradient, the pull-back


@pytest.mark.slow
@pytest.mark.parametrize("name", ["maml++", "modgrad", "gap"])
def test_one_graph_serves_all_steps_of_a_rule_with_parameters(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the traced graphs uncompiled: compiling takes a minute each and changes nothing here."""
    graphs = []
    monkeypatch.setattr(
        torch._inductor, "compile", lambda graph, _inputs, options: graphs.append(graph) or graph
    )
    method, task = build_method(name, 0.2, steps=2), small_task()
    model = FunctionalModule(method.prepare(small_conv(), None))
    rule_params = perturbed_rule_params(method, model)
    slow, fast = (
        MetaGradient(model, method.rule, steps=3, options=EngineOptions(compile=compile))
        for compile in (False, True)
    )
    for weights in (None, (0.2, 0.3, 0.5)):
        expected = slow(model.params(), rule_params, [task], query_weights=weights)
        result = fast(model.params(), rule_params, [task], query_weights=weights)
        assert total_error(result.params, expected.params) < 1e-10
        assert total_error(result.rule_params, expected.rule_params) < 1e-10
        torch.testing.assert_close(result.loss, expected.loss)
    assert len(graphs) == 3


def test_failure_to_compile_falls_back_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise RuntimeError("no C++ compiler here\nand a long story")

    monkeypatch.setattr(torch._inductor, "compile", broken)
    model, task = FunctionalModule(small_conv()), small_task()
    fast = engine(model, steps=2)
    expected = engine(model, steps=2, compile=False)(model.params(), {}, [task])
    with pytest.warns(RuntimeWarning, match=r"compiling failed.*no C\+\+ compiler here\)$") as caught:
        result = fast(model.params(), {}, [task])
    assert len(caught) == 1
    assert total_error(result.params, expected.params) < 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = fast(model.params(), {}, [task])
    assert total_error(again.params, expected.params) < 1e-12


class Viewing(torch.nn.Module):
    """Network whose ``view`` refuses channels-last images."""

    def __init__(self) -> None:
        super().__init__()
        self.classifier = torch.nn.Linear(4 * 4, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(images.view(len(images), -1))


@pytest.mark.slow
def test_a_network_that_needs_contiguous_images_is_compiled_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graphs = []
    monkeypatch.setattr(
        torch._inductor, "compile", lambda graph, _inputs, options: graphs.append(graph) or graph
    )
    model, task = FunctionalModule(Viewing().double()), small_task(size=4)
    slow, fast = (engine(model, steps=2, compile=compile) for compile in (False, True))
    expected = slow(model.params(), {}, [task])
    for _ in range(2):
        result = fast(model.params(), {}, [task])
        assert total_error(result.params, expected.params) < 1e-10
    assert len(graphs) == 3


def strict(graph: GraphModule, leaves: list[torch.Tensor]) -> Function:
    """Return the uncompiled graph, which checks the shapes and strides that it would be compiled for."""
    forms = [(leaf.shape, leaf.stride()) for leaf in leaves]

    def run(*arguments: torch.Tensor) -> object:
        assert [(value.shape, value.stride()) for value in arguments] == forms
        return graph(*arguments)

    return run


class ViewingMany(Viewing):
    """Network that needs contiguous images only if there are more than eight."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return super().forward(images if len(images) > 8 else images.contiguous())


def test_graphs_for_channels_last_images_are_compiled_again_for_contiguous_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "compile_graph", strict)
    source = torch.Generator().manual_seed(5)
    images, labels = torch.randn(12, 2, 4, 2, generator=source, dtype=torch.float64), torch.arange(12) % 3
    tasks = [Task(images[:3], labels[:3], images[n:], labels[n:]) for n in (6, 3)]
    model = FunctionalModule(ViewingMany().double())
    slow, fast = (engine(model, steps=2, compile=compile) for compile in (False, True))
    for task in (*tasks, tasks[0]):  # the second task has nine query images
        expected, result = (compute(model.params(), {}, [task]) for compute in (slow, fast))
        assert total_error(result.params, expected.params) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize(("subset", "memory"), [("all", None), (("blocks.0.*", "classifier.bias"), 0)])
def test_deep_conditioning_row_by_row(
    subset: str | tuple[str, ...], memory: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the traced graphs uncompiled. Rows save their results, or are computed twice."""
    monkeypatch.setattr(torch._inductor, "compile", lambda graph, _inputs, options: graph)
    monkeypatch.setattr(rows, "compile_graph", strict)
    if memory == 0:
        monkeypatch.setattr(rows, "JACOBIAN_MEMORY", 0)
    model, task = FunctionalModule(small_conv()), small_task()
    conditioning = Conditioning(subset=subset, weight=0.7, step_weights=(0.2, 0.8))
    slow, fast = (
        MetaGradient(
            model,
            maml(0.2),
            steps=2,
            conditioning=conditioning,
            options=EngineOptions(compile=compile, memory=memory),
        )
        for compile in (False, True)
    )
    expected, result = slow(model.params(), {}, [task]), fast(model.params(), {}, [task])
    monkeypatch.setattr(rows, "LARGEST_JACOBIAN", 0)
    other = MetaGradient(
        model, maml(0.2), steps=2, conditioning=conditioning, options=EngineOptions(compile=True)
    )
    assert total_error(other(model.params(), {}, [task]).params, expected.params) < 1e-9
    assert total_error(result.params, expected.params) < 1e-9
    torch.testing.assert_close(result.loss, expected.loss)
    torch.testing.assert_close(result.tasks[0].condition_numbers, expected.tasks[0].condition_numbers)


class Scaled(torch.nn.Module):
    """Network with a buffer, which is not an argument of the traced functions."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor([2.0, 1.0, 3.0, 1.0]))
        self.hidden = torch.nn.Linear(6, 4)
        self.classifier = torch.nn.Linear(4, 3)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.classifier(torch.tanh(self.hidden(values)) * self.scale)
        return result


@pytest.mark.slow
def test_a_buffer_can_change_after_compiling() -> None:
    network = Scaled().double()
    model = FunctionalModule(network, classifier="classifier")
    source = torch.Generator().manual_seed(3)
    support, query = (torch.randn(n, 6, generator=source, dtype=torch.float64) for n in (6, 9))
    task = Task(support, torch.arange(3).repeat(2), query, torch.arange(3).repeat(3))
    slow, fast = (
        MetaGradient(model, maml(0.3), steps=2, options=EngineOptions(compile=compile))
        for compile in (False, True)
    )
    for _ in range(2):
        expected = slow(model.params(), {}, [task])
        assert total_error(fast(model.params(), {}, [task]).params, expected.params) < 1e-12
        network.scale.mul_(-0.7)


class Masked(torch.nn.Module):
    """Network of images and a weight per image; batch norm uses running statistics in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(1, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.classifier = torch.nn.Linear(4, 3)

    def forward(self, images: torch.Tensor, weights: torch.Tensor) -> dict[str, torch.Tensor]:
        maps = torch.tanh(self.norm(self.stem(images)))
        return {"logits": self.classifier(maps.mean((2, 3)) * weights[:, None])}


@pytest.mark.slow
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("subset", ["cls", "all"])
def test_inputs_of_several_tensors_in_both_modes(
    training: bool, subset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the traced graphs uncompiled."""
    monkeypatch.setattr(torch._inductor, "compile", lambda graph, _inputs, options: graph)
    torch.manual_seed(0)
    module = Masked().double().train(training)
    images = small_task(size=8)
    weights = torch.linspace(0.5, 2, 9, dtype=torch.float64)
    support, query = ({"images": x, "weights": weights[: len(x)]} for x in (images.support_x, images.query_x))
    model = FunctionalModule(module)
    slow, fast = (engine(model, steps=2, subset=subset, compile=compile) for compile in (False, True))
    for task in (
        Task(support, images.support_y, query, images.query_y),
        Task(tuple(support.values()), images.support_y, tuple(query.values()), images.query_y),
    ):
        expected = slow(model.params(), {}, [task])
        assert total_error(fast(model.params(), {}, [task]).params, expected.params) < 1e-10
