"""The examples compute the right numbers, and show what they claim."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

import data_parallel
import meta_learner_loop
import own_loop
import with_higher
import with_torch_func
import with_torchopt
from firststep import Task
from launches import finished, torchrun
from reference import dense_gram, log_variance, naive_residuals, total_error
from toy import RATE, STEPS, Perceptron, ToyTask, toy_task

EXAMPLES = Path(own_loop.__file__).parent


def task64(seed: int = 3) -> ToyTask:
    return Task(*toy_task(torch.Generator().manual_seed(seed))).to(dtype=torch.float64)


def reference(model: Perceptron, task: ToyTask, gamma: float) -> tuple[float, dict[str, torch.Tensor]]:
    """Return the outer loss and its gradient by dense Jacobians and plain autograd."""
    support, support_y, query, query_y = task
    start = dict(model.named_parameters())
    params, conditioning_loss = dict(start), torch.zeros((), dtype=torch.float64)
    for _ in range(STEPS):
        gram = dense_gram(
            lambda p: naive_residuals(functional_call(model, p, (support,)), support_y),
            params,
            ["classifier.weight", "classifier.bias"],
        )
        conditioning_loss = conditioning_loss + log_variance(gram) / STEPS
        loss = F.cross_entropy(functional_call(model, params, (support,)), support_y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        params = {name: p - RATE * g for (name, p), g in zip(params.items(), grads, strict=True)}
    outer = F.cross_entropy(functional_call(model, params, (query,)), query_y) + gamma * conditioning_loss
    grads = torch.autograd.grad(outer, list(start.values()))
    return outer.item(), dict(zip(start, grads, strict=True))


LOOPS = [own_loop, with_torch_func, with_higher, with_torchopt]


@pytest.mark.parametrize("example", LOOPS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("gamma", [0.0, 0.7])
def test_loops_with_the_loss_have_the_gradient_of_plain_autograd(example: ModuleType, gamma: float) -> None:
    model = Perceptron().double()
    loss, expected = reference(model, task64(), gamma)
    found = example.outer_loss(model, task64(), gamma)
    found.backward()
    assert found.item() == pytest.approx(loss, rel=1e-9)
    got = {name: p.grad for name, p in model.named_parameters()}
    assert total_error(got, expected) < 1e-8


@pytest.mark.parametrize("example", LOOPS, ids=lambda m: m.__name__)
def test_every_step_starts_where_the_one_before_ended(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Query losses after 1, 2 and 3 steps: a loop that starts again at θ(0) would repeat the first."""
    model, (support, support_y, query, query_y) = Perceptron().double(), task64()
    params, expected = dict(model.named_parameters()), []
    for _ in range(3):
        loss = F.cross_entropy(functional_call(model, params, (support,)), support_y)
        grads = torch.autograd.grad(loss, list(params.values()))
        params = {name: p - RATE * g for (name, p), g in zip(params.items(), grads, strict=True)}
        expected.append(F.cross_entropy(functional_call(model, params, (query,)), query_y).item())
    assert expected == pytest.approx(sorted(expected, reverse=True))
    assert min(a - b for a, b in pairwise(expected)) > 0.01
    found = []
    for steps in (1, 2, 3):
        monkeypatch.setattr(example, "STEPS", steps)
        found.append(example.outer_loss(model, task64(), 0.0).item())
    assert found == pytest.approx(expected, rel=1e-10)


def test_tasks_side_by_side_have_the_losses_of_tasks_by_themselves() -> None:
    model, tasks = Perceptron().double(), [task64(seed) for seed in (3, 4)]
    together = with_torch_func.outer_losses(
        model, tuple(torch.stack(parts) for parts in zip(*tasks, strict=True)), 0.7
    )
    apart = [reference(model, task, 0.7)[0] for task in tasks]
    assert together.tolist() == pytest.approx(apart, rel=1e-9)


def test_the_meta_learner_has_it_too() -> None:
    meta = meta_learner_loop.make_meta_learner(gamma=0.7).double()
    loss, expected = reference(meta.network, task64(), 0.7)
    found = meta([task64()])
    found.backward()
    assert found.item() == pytest.approx(loss, rel=1e-9)
    assert total_error({n: p.grad for n, p in meta.network.named_parameters()}, expected) < 1e-8


def test_plain_torch_loop_gets_a_lower_condition_number_and_a_better_first_step() -> None:
    results = own_loop.main(updates=300)
    (maml_accuracy, maml_kappa), (accuracy, kappa) = results["MAML"], results["conditioned"]
    assert kappa < 0.8 * maml_kappa
    assert accuracy[1] > maml_accuracy[1]


def test_the_loop_with_torch_func_runs() -> None:
    assert with_torch_func.main(updates=3).keys() == {"MAML", "conditioned"}


@pytest.mark.parametrize("example", [with_higher, with_torchopt], ids=lambda m: m.__name__)
def test_loops_of_other_libraries_get_a_lower_condition_number(example: ModuleType) -> None:
    results = example.main(updates=150)
    assert results["conditioned"] < 0.8 * results["MAML"]


def test_meta_learner_loop_learns() -> None:
    meta = meta_learner_loop.make_meta_learner()
    losses = meta_learner_loop.meta_train(meta, updates=120)
    assert sum(losses[-20:]) < 0.9 * sum(losses[:20])
    assert meta_learner_loop.main(updates=120)["accuracy"] > 0.4  # chance is 0.2


@pytest.mark.slow
def test_data_parallel_is_one_process_with_all_tasks() -> None:
    """DDP on gloo with two processes, started as the docstring says."""
    single = sum(p.abs().sum() for p in data_parallel.meta_train(5, 0, 1).parameters()).item()
    out, _ = finished(torchrun(2, str(EXAMPLES / "data_parallel.py"), "5"))
    assert "2 processes" in out
    assert float(out.split(":")[-1]) == pytest.approx(single, rel=1e-9)
