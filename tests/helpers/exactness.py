"""Checks of a network against plain autograd by hand: meta-gradient, Gram matrix, adaptation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from firststep import Conditioning, MetaLearner, Task, maml
from firststep.functional import FunctionalModule, support_gram
from plain_maml import logits_of, outer_loss_and_gradient, residuals_gram, textbook_operations
from reference import relative_error, total_error

RATE, STEPS, GAMMA = 0.3, 2, 0.5


def check_exact(
    network: nn.Module, task: Task, subset: str = "all", rate: float = RATE, **options: object
) -> MetaLearner:
    """Check loss and gradient of a meta-learner against plain autograd."""
    meta = MetaLearner(
        network, maml(rate), steps=STEPS, conditioning=Conditioning(subset=subset, weight=GAMMA), **options
    )
    with torch.no_grad():
        without_gradient = meta([task])
    loss = meta([task])
    loss.backward()
    found = {n: p.grad for n, p in network.named_parameters() if p.requires_grad}
    with textbook_operations():
        expected, gradient = outer_loss_and_gradient(
            network, task, rate=rate, steps=STEPS, psi=meta.functional.subset(subset), gamma=GAMMA
        )
    assert loss.item() == pytest.approx(expected.item(), rel=1e-9)
    assert without_gradient.item() == pytest.approx(expected.item(), rel=1e-9)
    assert total_error(found, gradient) < 1e-7
    return meta


def check_gram_and_adaptation(network: nn.Module, task: Task) -> None:
    model = FunctionalModule(network)
    for subset in ("cls", "emb", "all"):
        gram = support_gram(model, task.support_x, task.support_y, subset=subset)
        with textbook_operations():
            dense = residuals_gram(
                network, model.params(), task.support_x, task.support_y, model.subset(subset)
            )
        assert relative_error(gram, dense) < 1e-9, subset
    adapted = MetaLearner(network, maml(RATE), steps=1).adapt(task.support_x, task.support_y)
    with textbook_operations():
        start = {n: p.detach().requires_grad_() for n, p in network.named_parameters() if p.requires_grad}
        logits = logits_of(network, start, task.support_x)
        loss = nn.functional.cross_entropy(logits, task.support_y)
        grads = torch.autograd.grad(loss, list(start.values()), materialize_grads=True)
    expected = {n: p - RATE * g for (n, p), g in zip(start.items(), grads, strict=True)}
    moved = dict(adapted.named_parameters())
    assert total_error({name: moved[name].detach() for name in expected}, expected) < 1e-10
