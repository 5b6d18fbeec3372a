"""Proto-MAML: the classifier starts from class means of the support features, differentiated through."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

import firststep as fs
from firststep.functional import FunctionalModule
from networks import shallow_conv, shallow_task
from reference import dense_gram, log_variance, naive_residuals, total_error

RATE, STEPS, GAMMA = 0.05, 2, 0.3


def make(subset: str | None = "cls", **options: Any) -> fs.MetaLearner:
    conditioning = None if subset is None else fs.Conditioning(subset=subset, weight=GAMMA)
    options = {"rule": fs.maml(RATE), "steps": STEPS, **options}
    return fs.MetaLearner(shallow_conv(), head="prototypes", conditioning=conditioning, **options)


def gradients(meta: fs.MetaLearner) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in meta.named_parameters() if p.grad is not None}


def rows_of_means(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Compute class by class, as in the paper: w = 2 c, b = -|c|²."""
    means = [features[labels == c].mean(0) for c in range(int(labels.max()) + 1)]
    return torch.stack([2 * c for c in means]), torch.stack([-(c @ c) for c in means])


def reference(meta: fs.MetaLearner, task: fs.Task, subset: str | None) -> tuple[Tensor, dict[str, Tensor]]:
    """Compute by plain autograd through the class means and the unrolled inner loop."""
    x, y, query_x, query_y = task
    body = {
        name: p.detach().clone().requires_grad_()
        for name, p in meta.network.named_parameters()
        if not name.startswith("classifier")
    }
    caught: list[Tensor] = []
    handle = meta.network.classifier.register_forward_pre_hook(lambda _, args: caught.append(args[0]))
    functional_call(meta.network, body, (x,))
    handle.remove()
    weight, bias = rows_of_means(caught[0], y)
    theta = {**body, "classifier.weight": weight, "classifier.bias": bias}
    total = torch.zeros((), dtype=torch.float64)
    for _ in range(STEPS):
        # An inner step takes the rows as variables of their own, not as functions of the body.
        theta = {name: value.clone() for name, value in theta.items()}
        if subset is not None:
            gram = dense_gram(
                lambda p: naive_residuals(functional_call(meta.network, p, (x,)), y),
                theta,
                meta.functional.subset(subset),
            )
            total = total + GAMMA / STEPS * log_variance(gram)
        loss = F.cross_entropy(functional_call(meta.network, theta, (x,)), y)
        grads = torch.autograd.grad(loss, list(theta.values()), create_graph=True)
        theta = {name: p - RATE * g for (name, p), g in zip(theta.items(), grads, strict=True)}
    total = total + F.cross_entropy(functional_call(meta.network, theta, (query_x,)), query_y)
    grads = torch.autograd.grad(total, list(body.values()), materialize_grads=True)
    return total.detach(), {f"network.{name}": g for name, g in zip(body, grads, strict=True)}


@pytest.mark.parametrize("subset", [None, "cls", "cls+emb", "emb"])
@pytest.mark.parametrize("options", [{}, {"engine": "unrolled"}, {"memory": 0}])
def test_the_meta_gradient_is_that_of_plain_autograd(subset: str | None, options: dict[str, Any]) -> None:
    meta, task = make(subset, **options), shallow_task()
    loss = meta([task])
    loss.backward()
    expected_loss, expected = reference(meta, task, subset)
    assert loss.item() == pytest.approx(expected_loss.item(), rel=1e-9)
    assert total_error(gradients(meta), expected) < 1e-7
    assert not any(name.startswith("network.classifier") for name in gradients(meta))
    with torch.no_grad():
        assert meta([task]).item() == pytest.approx(expected_loss.item(), rel=1e-9)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), ways=st.integers(2, 5))
def test_the_directional_derivative_is_that_of_finite_differences(seed: int, ways: int) -> None:
    meta, task = make(), shallow_task(ways=ways, seed=seed)
    meta([task]).backward()
    generator = torch.Generator().manual_seed(seed)
    learned = [p for p in meta.parameters() if p.grad is not None]
    direction = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in learned]
    slope = sum((p.grad * d).sum() for p, d in zip(learned, direction, strict=True))
    values, width = [], 1e-6
    for sign in (1, -2):
        with torch.no_grad():
            for p, d in zip(learned, direction, strict=True):
                p.add_(sign * width * d)
            values.append(meta([task]))
    assert slope.item() == pytest.approx(((values[0] - values[1]) / (2 * width)).item(), rel=1e-4, abs=1e-5)


def test_before_the_first_step_it_is_the_prototypical_network() -> None:
    meta, task = make(), shallow_task(ways=4)
    logits = meta.adapt(*task[:2], steps=0)(task.support_x)
    features = meta.functional.features(meta.adapted_params(*task[:2], steps=0), task.support_x)
    means = torch.stack([features[task.support_y == c].mean(0) for c in range(4)])
    distances = torch.cdist(features, means).square()
    torch.testing.assert_close(logits.log_softmax(-1), (-distances).log_softmax(-1))


def test_the_compiled_graphs_give_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._inductor, "compile", lambda graph, _inputs, options: graph)
    tasks = [shallow_task(seed=5), shallow_task(ways=4, seed=6)]
    expected, found = make(), make(compile=True)
    expected(tasks).backward()
    found(tasks).backward()
    assert total_error(gradients(found), gradients(expected)) < 1e-9


def test_it_serves_any_number_of_classes_and_the_body_alone_may_move() -> None:
    meta, task = make(rule=fs.boil(RATE)), shallow_task(ways=6, seed=3)
    assert meta.for_classes(6) is meta
    assert meta.adapt(*task[:2])(task.query_x).shape[1] == 6
    assert meta.choose_steps(*task[:2]).folds == 2
    assert meta.condition_number(*task[:2], subset="emb") > 1


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(ValueError, match="needs randomness='error', and a classifier with a bias"):
        fs.MetaLearner(nn.Linear(3, 2, bias=False), head="prototypes")
    with pytest.raises(ValueError, match="head='prototypes' needs targets that are classes"):
        fs.MetaLearner(nn.Linear(3, 2), head="prototypes", loss="squared_error")
    model = FunctionalModule(shallow_conv(), head="prototypes")
    with pytest.raises(ValueError, match="needs the support set"):
        model.initial_params(model.params(), torch.tensor([0, 1]))
