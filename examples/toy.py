"""Toy tasks and a small network that the examples share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WAYS, SHOTS, QUERIES, DIMENSIONS, HIDDEN, STEPS, RATE = 5, 5, 10, 16, 64, 3, 0.1
ToyTask = tuple[Tensor, Tensor, Tensor, Tensor]
OuterLoss = Callable[["Perceptron", ToyTask, float], Tensor]
"""(model, task, γ) → MAML's loss of the task plus γ times the conditioning loss."""


def toy_task(generator: torch.Generator) -> ToyTask:
    """Draw noisy points around five random centres, in a space whose axes have very different scales."""
    centres = torch.randn(WAYS, DIMENSIONS, generator=generator)
    labels = torch.arange(WAYS).repeat_interleave(SHOTS + QUERIES)
    points = centres[labels] + 0.7 * torch.randn(len(labels), DIMENSIONS, generator=generator)
    points = points * torch.logspace(0.5, -1.0, DIMENSIONS)
    support = (torch.arange(len(labels)) % (SHOTS + QUERIES)) < SHOTS
    return points[support], labels[support], points[~support], labels[~support]


class Perceptron(nn.Module):
    """One hidden layer; ``model.body(x)`` are the features that ``model.classifier`` sees."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.body = nn.Sequential(nn.Linear(DIMENSIONS, HIDDEN), nn.ReLU())
            self.classifier = nn.Linear(HIDDEN, WAYS)

    def forward(self, points: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.body(points))
        return logits


def meta_train(outer_loss: OuterLoss, gamma: float, updates: int) -> Perceptron:
    """Run the training loop around an outer loss, with one task per update."""
    generator = torch.Generator().manual_seed(0)
    model = Perceptron()
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(updates):
        optimiser.zero_grad()
        outer_loss(model, toy_task(generator), gamma).backward()
        optimiser.step()
    return model


def adapted_accuracy(model: nn.Module, tasks: int = 200, seed: int = 1) -> list[float]:
    """Return the mean query accuracy after 0..STEPS plain gradient steps."""
    generator = torch.Generator().manual_seed(seed)
    right = torch.zeros(STEPS + 1)
    for _ in range(tasks):
        support, support_y, query, query_y = toy_task(generator)
        params: dict[str, Tensor] = dict(model.named_parameters())
        for step in range(STEPS + 1):
            logits = torch.func.functional_call(model, params, (query,))
            right[step] += (logits.argmax(-1) == query_y).float().mean() / tasks
            loss = F.cross_entropy(torch.func.functional_call(model, params, (support,)), support_y)
            grads = torch.autograd.grad(loss, list(params.values()))
            params = {name: p - RATE * g for (name, p), g in zip(params.items(), grads, strict=True)}
    return right.tolist()
