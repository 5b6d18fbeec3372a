"""Every rule, head, subset, backbone and network computes on a second device what it computes on the CPU.

The device refuses CPU tensors among its own and records what Python reads. So these tests also show that
nothing falls back to the CPU, and that a meta-gradient waits for the device only where ``ALLOWED`` says so.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from device_cases import CPU, WAYS, conv, images_task, same_as_on_the_cpu
from firststep import Conditioning, MetaLearner, build_backbone, maml
from firststep.evaluation import measure_task
from firststep.evaluation.probes import logistic, nearest_means, ridge
from firststep.machine_check import check_machine
from firststep.methods import METHODS, build_method
from networks import generator
from second_device import SECOND
from zoo import ZOO, in_zoo

NOT_ON_IT = {
    "lstm": "torch's recurrent kernels know no device in Python",
    "gru": "torch's recurrent kernels know no device in Python",
    "tied-layers": "Module.to unties the parameters of a device in Python",
    "tied-classifier": "Module.to unties the parameters of a device in Python",
}
"""Networks of the zoo that the device cannot hold."""
REFUSED = {("boil", "shared"), ("metal", "shared"), ("modgrad", "shared"), ("modgrad", "per-class")}
"""Methods that never move the classifier, or learn a loss for a number of classes; and modgrad, because
torch's product of a vector and a matrix changes a shape in place, which a tensor in Python cannot follow."""


@pytest.mark.parametrize(
    ("name", "head"),
    [(name, head) for name in METHODS for head in ("per-class", "shared") if (name, head) not in REFUSED],
)
def test_methods(name: str, head: str) -> None:
    method = build_method(name, steps=2)
    network = method.prepare(conv(), generator(3))
    conditioning = None if name in ("boil", "modgrad") else Conditioning()
    task = images_task(16)
    same_as_on_the_cpu(network, task, rule=method.rule, head=head, conditioning=conditioning)


@pytest.mark.parametrize("options", [{}, {"memory": 0}, {"engine": "unrolled"}], ids=str)
@pytest.mark.parametrize("subset", ["cls", "emb", "ebn", "all"])
def test_subsets(subset: str, options: dict[str, Any]) -> None:
    same_as_on_the_cpu(conv(), images_task(16), conditioning=Conditioning(subset=subset), **options)


@pytest.mark.parametrize(("name", "size"), [("conv6", 32), ("resnet10", 32)])
def test_backbones(name: str, size: int) -> None:
    filters = {"filters": 4} if name.startswith("conv") else {}
    network = build_backbone(name, ways=WAYS, image_size=size, generator=generator(1), **filters)
    same_as_on_the_cpu(network, images_task(size, 3), conditioning=Conditioning())


@pytest.mark.parametrize("name", [name for name in ZOO if name not in NOT_ON_IT])
def test_zoo(name: str) -> None:
    network, task = in_zoo(name)
    same_as_on_the_cpu(network, task, rule=maml(0.1), conditioning=Conditioning())


def test_adapt_and_every_metric() -> None:
    task = images_task(16)
    found, expected = (
        (
            meta.adapt(own.support_x, own.support_y)(own.query_x).cpu(),
            measure_task(meta, own, steps=[0, 1, 2]),
        )
        for meta, own in ((MetaLearner(conv().to(on), maml(0.1)), task.to(on)) for on in (SECOND, CPU))
    )
    torch.testing.assert_close(found[0], expected[0], rtol=1e-5, atol=1e-5)
    for name, values in expected[1].items():
        assert found[1][name] == pytest.approx(values, rel=1e-4), name


@pytest.mark.parametrize("probe", [nearest_means, ridge, logistic])
def test_probes(probe: Any) -> None:
    features, labels = torch.randn(12, 5, generator=generator(0)), torch.arange(WAYS).repeat(4)
    predict = probe(features.to(SECOND), labels.to(SECOND))
    assert torch.equal(predict(features.to(SECOND)).cpu(), probe(features, labels)(features))


def test_a_cpu_tensor_among_those_of_the_device_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="among tensors of the device"):
        torch.ones(2, device=SECOND) + torch.ones(2)


def test_the_check_of_a_machine_passes_on_it() -> None:
    report = check_machine(SECOND, compile=False)
    assert report.passed, report.checks
