"""Adaptation is gradient descent; it holds no graph and shares no memory with the module."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from firststep import anil, build_method, maml
from firststep.adaptation import choose_steps, held_out_folds, inner_step
from firststep.functional import FunctionalModule, Learner, adapt
from networks import small_conv, small_task


def test_adaptation_is_gradient_descent() -> None:
    """Against torch.optim.SGD on the module itself."""
    module, task = small_conv(), small_task()
    trajectory = adapt(Learner(FunctionalModule(module), maml(0.3)), task.support_x, task.support_y, steps=3)
    optimiser = torch.optim.SGD(module.parameters(), 0.3)
    for k in range(3):
        loss = F.cross_entropy(module(task.support_x), task.support_y)
        assert trajectory.aux[k].loss.item() == pytest.approx(loss.item(), rel=1e-12)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(
                trajectory.params[k + 1][name], parameter.detach(), rtol=1e-9, atol=1e-12
            )


def test_adaptation_holds_no_graph() -> None:
    model, task = FunctionalModule(small_conv()), small_task(seed=3)
    trajectory = adapt(Learner(model, maml()), task.support_x, task.support_y, steps=2, subset="all")
    assert len(trajectory.params) == 3
    tensors = [value for params in trajectory.params for value in params.values()]
    tensors += [value for aux in trajectory.aux for value in aux if isinstance(value, torch.Tensor)]
    assert not any(value.requires_grad or value.grad_fn for value in tensors)
    with pytest.raises(ValueError, match="steps must not be negative"):
        adapt(Learner(model, maml()), task.support_x, task.support_y, steps=-1)


def test_training_the_module_further_does_not_change_what_was_adapted() -> None:
    """ANIL leaves the body as it is: it must be a copy, not the module's own."""
    module, task = small_conv(), small_task()
    adapted = adapt(
        Learner(FunctionalModule(module), anil()), task.support_x, task.support_y, steps=1
    ).adapted
    before = {name: value.clone() for name, value in adapted.items()}
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(before[name], value) for name, value in adapted.items())


def test_a_trajectory_with_its_graph_reaches_the_module() -> None:
    module, task = small_conv(), small_task()
    model = FunctionalModule(module)
    trajectory = adapt(Learner(model, maml(0.1)), task.support_x, task.support_y, steps=2, create_graph=True)
    F.cross_entropy(model(trajectory.adapted, task.query_x).logits, task.query_y).backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_one_step_of_the_trajectory() -> None:
    model, task = FunctionalModule(small_conv()), small_task()
    rule = maml(0.1)
    new, aux = inner_step(Learner(model, rule), task.support_x, task.support_y, subset="cls")
    trajectory = adapt(Learner(model, rule), task.support_x, task.support_y, steps=1, subset="cls")
    assert all(torch.equal(new[name], value) for name, value in trajectory.adapted.items())
    assert torch.equal(aux.gram, trajectory.aux[0].gram)


def test_folds_hold_out_one_of_every_class_in_turn() -> None:
    labels = torch.tensor([0, 1, 0, 1, 1, 0])
    folds = held_out_folds(labels)
    assert [sorted(labels[fold].tolist()) for fold in folds] == [[0, 1]] * 3
    assert torch.stack(folds).sum(0).tolist() == [1] * 6
    assert held_out_folds(torch.tensor([0, 1, 1])) == []
    assert len(held_out_folds(torch.arange(2).repeat(9))) == 5


@pytest.mark.parametrize(
    "form", [lambda x: x, lambda x: (x,), lambda x: {"images": x}], ids=["tensor", "tuple", "dict"]
)
def test_the_number_of_steps_is_that_of_the_lowest_held_out_loss(form: object) -> None:
    method, task = build_method("maml", 0.5), small_task(shots=3)
    model = FunctionalModule(small_conv())
    images, labels = task.support_x, task.support_y
    choice = choose_steps(Learner(model, method.rule), form(images), labels, trained=5, longest=3)
    losses = torch.zeros(4, dtype=torch.float64)
    for fold in held_out_folds(labels):
        stages = adapt(Learner(model, method.rule), images[~fold], labels[~fold], steps=3).params
        for step, params in enumerate(stages):
            losses[step] += F.cross_entropy(model(params, images).logits[fold], labels[fold]) / 3
    assert choice.folds == 3
    assert choice.losses == pytest.approx(losses.tolist())
    assert choice.steps == int(losses.argmin())


def test_with_one_sample_a_class_the_trained_number_is_taken() -> None:
    model, task = FunctionalModule(small_conv()), small_task(shots=1)
    choice = choose_steps(Learner(model, maml()), task.support_x, task.support_y, trained=4, longest=9)
    assert (choice.steps, choice.losses, choice.folds) == (4, (), 0)
