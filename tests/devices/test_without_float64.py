"""A device without float64: nothing asks for it, the n x n part runs on the CPU, gradients flow through."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from device_cases import WAYS, conv, images_task, same_as_on_the_cpu
from firststep import Conditioning, MetaLearner, Task, maml
from firststep.evaluation import measure_task
from firststep.evaluation.probes import logistic, nearest_means, ridge
from firststep.losses import LOSSES
from firststep.methods import build_method
from networks import generator
from no_float64 import RefuseFloat64, without_float64
from second_device import SECOND

ENGINES: list[dict[str, Any]] = [{}, {"memory": 0}, {"engine": "unrolled"}]
META = torch.device("meta")


def on_second(network: nn.Module, task: Task, **options: Any) -> None:
    """Compare the meta-gradient on the second device, which refuses float64, with that of the CPU."""
    same_as_on_the_cpu(network, task, around=lambda: without_float64("standin"), **options)


@pytest.mark.parametrize("options", ENGINES, ids=str)
@pytest.mark.parametrize("subset", ["cls", "all"])
def test_subsets_on_the_second_device(subset: str, options: dict[str, Any]) -> None:
    on_second(conv(), images_task(16), conditioning=Conditioning(subset=subset), **options)


@pytest.mark.parametrize("name", ["adam", "gauss-newton", "gap", "meta-curvature"])
def test_rules_that_compute_more_than_a_product(name: str) -> None:
    method = build_method(name, steps=2)
    on_second(method.prepare(conv(), generator(3)), images_task(16), rule=method.rule)


@pytest.mark.parametrize("name", [name for name in LOSSES if LOSSES[name].kind in ("regression", "labels")])
def test_losses(name: str) -> None:
    target = torch.rand(5 * WAYS, WAYS, generator=generator(5))
    task = images_task(16)._replace(support_y=target[: 2 * WAYS], query_y=target[2 * WAYS :])
    on_second(conv(), task, loss=name, conditioning=Conditioning())


@pytest.mark.parametrize("options", ENGINES, ids=str)
@pytest.mark.parametrize("subset", ["cls", "all"])
def test_meta(subset: str, options: dict[str, Any]) -> None:
    meta = MetaLearner(conv().to(META), conditioning=Conditioning(subset=subset), steps=2, **options)
    with without_float64("meta"):
        meta([images_task(16).to(META)]).backward()
    assert all(value.grad is not None and value.grad.device == META for value in meta.parameters())


def test_on_a_cpu_only_the_last_layer_is_in_float64() -> None:
    task = images_task(16)
    meta = MetaLearner(conv(), conditioning=Conditioning(), steps=2)
    n = len(task.support_y)  # larger than the number of features here, which are in float64 too
    with RefuseFloat64("cpu", meta.steps * n * n):  # the report's condition numbers
        meta([task]).backward()
    with pytest.raises(AssertionError, match="gives float64"), RefuseFloat64("cpu", n * n - 1):
        meta([task])


def test_adapt_and_every_metric() -> None:
    def measured(device: torch.device) -> tuple[Tensor, dict[str, list[float]]]:
        task = images_task(16).to(device)
        meta = MetaLearner(copy.deepcopy(conv()).to(device), maml(0.1))
        answers = meta.adapt(task.support_x, task.support_y, steps="auto")(task.query_x)
        return answers.cpu(), measure_task(meta, task, steps=[0, 1])

    with without_float64("standin"):
        found = measured(SECOND)
    expected = measured(torch.device("cpu"))
    torch.testing.assert_close(found[0], expected[0], rtol=1e-5, atol=1e-5)
    for name, values in expected[1].items():
        assert found[1][name] == pytest.approx(values, rel=1e-4), name


@pytest.mark.parametrize("probe", [nearest_means, ridge, logistic])
def test_probes(probe: Any) -> None:
    features, labels = torch.randn(12, 5, generator=generator(0)), torch.arange(WAYS).repeat(4)
    with without_float64("standin"):
        found = probe(features.to(SECOND), labels.to(SECOND))(features.to(SECOND))
    assert torch.equal(found.cpu(), probe(features, labels)(features))


def test_compiled_steps_say_why_they_run_uncompiled() -> None:
    meta = MetaLearner(conv().to(SECOND), conditioning=Conditioning(), steps=2, compile=True)
    with (
        without_float64("standin"),
        pytest.warns(RuntimeWarning, match="compiled steps need float64, which standin does not have"),
    ):
        meta([images_task(16).to(SECOND)]).backward()
