"""Each cause of a bad first step is reported where it was constructed, and only there."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.functional import hessian, jacobian
from torch.func import functional_call

from firststep import MetaLearner, maml
from firststep.evaluation import METRICS, AdaptationState, FirstStep, measure_first_step
from firststep.task import Task

WAYS, SHOTS, FEATURES = 4, 3, 40


def tasks(repeated: bool = False, features: int = FEATURES) -> list[Task]:
    """Return tasks with well separated classes, which a linear classifier learns in one step."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for _ in range(3):
        centres = torch.randn(WAYS, features, generator=generator, dtype=torch.float64)
        labels = torch.arange(WAYS).repeat_interleave(SHOTS)
        noise = 0.1 * torch.randn(2, WAYS * SHOTS, features, generator=generator, dtype=torch.float64)
        support = centres[labels] + (0 if repeated else noise[0])
        made.append(Task(support, labels, centres[labels] + noise[1], labels))
    return made


def learner(rate: float, offset: float = 0.0, features: int = FEATURES) -> MetaLearner:
    network = nn.Sequential(nn.Flatten(), nn.Linear(features, WAYS)).double()
    with torch.no_grad():
        network[1].weight.mul_(0.01)
        network[1].bias.copy_(offset * torch.eye(WAYS)[0])
    return MetaLearner(network, maml(rate), steps=1)


def words(step: FirstStep) -> list[str]:
    return [cause.partition(":")[0] for cause in step.causes()]


def test_a_good_first_step_has_no_cause() -> None:
    step = measure_first_step(learner(0.05), tasks(), 0.05)
    assert step.accuracy[1] > 0.95
    assert step.support_loss[1] < step.support_loss[0]
    assert words(step) == []


def test_class_offset_is_reported() -> None:
    step = measure_first_step(learner(0.05, offset=30.0), tasks(), 0.05)
    assert step.accuracy[1] < 0.3
    assert step.centred_accuracy > 0.95
    assert step.largest_share[1] > 0.9
    assert words(step)[0] == "class offset"
    assert f"log {WAYS} is {math.log(WAYS):.2f}" in step.causes()[0]


def test_overshoot_is_reported() -> None:
    step = measure_first_step(learner(3.0), tasks(), 3.0)
    assert words(step) == ["overshoot"]


def test_repeated_images_are_reported_as_rank_loss() -> None:
    step = measure_first_step(learner(0.05), tasks(repeated=True), 0.05)
    assert words(step) == ["rank loss"]
    assert step.rank == WAYS


def test_too_few_features_are_reported() -> None:
    step = measure_first_step(learner(0.05, features=1), tasks(features=1), 0.05)
    assert "too few features" in words(step)
    assert step.parameters == 2 * WAYS


def test_curvature_matches_the_dense_gauss_newton_matrix() -> None:
    """The residuals sqrt(loss / n) have squares that sum to the mean loss."""
    meta, task = learner(0.3, offset=1.0), tasks()[0]
    assert isinstance(task.support_x, Tensor)
    params = dict(meta.network.named_parameters())

    def residuals(flat: Tensor) -> Tensor:
        values = unflatten(flat)
        logits = functional_call(meta.network, values, (task.support_x,))
        losses = nn.functional.cross_entropy(logits, task.support_y, reduction="none")
        return (losses / len(losses)).sqrt()

    def unflatten(flat: Tensor) -> dict[str, Tensor]:
        parts = flat.split([value.numel() for value in params.values()])
        return {n: part.view_as(v) for (n, v), part in zip(params.items(), parts, strict=True)}

    flat = torch.cat([value.detach().flatten() for value in params.values()])
    dense = jacobian(residuals, flat)
    largest = torch.linalg.eigvalsh(2 * dense.T @ dense)[-1].item()
    step = measure_first_step(meta, [task], 0.3)
    assert step.curvature == pytest.approx(0.3 * largest, rel=1e-9)
    # It approximates the largest eigenvalue of the true Hessian.
    true = torch.linalg.eigvalsh(hessian(lambda f: residuals(f).square().sum(), flat))[-1].item()
    assert 0.2 < largest / true < 5


@torch.no_grad()
def test_metrics_of_a_class_offset_match_their_formulas() -> None:
    meta, task = learner(0.05, offset=30.0), tasks()[0]
    state = AdaptationState(meta.functional, meta.functional.params(), task, 0, "cls")
    found = {name: float(METRICS[name].compute(state)) for name in ("support_loss", "largest_share")}
    assert found["largest_share"] == 1.0
    logits = meta.network(task.support_x)
    assert found["support_loss"] == pytest.approx(
        nn.functional.cross_entropy(logits, task.support_y).item(), rel=1e-12
    )
    mean = meta.network(task.query_x).mean(0)
    expected = (mean - mean.mean()).norm().item()
    assert float(METRICS["class_offset"].compute(state)) == pytest.approx(expected, rel=1e-12)
