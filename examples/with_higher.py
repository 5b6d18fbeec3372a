"""The conditioning loss in a loop written with the library ``higher`` (a development dependency).

``higher`` patches a module so that its inner steps are differentiable; the loss joins as one line.
Run: python examples/with_higher.py
"""

from __future__ import annotations

import higher
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep import FunctionalModule, condition_number, conditioning_loss, support_gram
from own_loop import DIMENSIONS, HIDDEN, RATE, STEPS, WAYS, toy_task


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(DIMENSIONS, HIDDEN), nn.ReLU())
        self.classifier = nn.Linear(HIDDEN, WAYS)

    def forward(self, points: Tensor) -> Tensor:
        return self.classifier(self.body(points))


def meta_train(gamma: float, updates: int) -> Perceptron:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Perceptron()
    inner = torch.optim.SGD(model.parameters(), RATE)
    outer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(updates):
        support, support_y, query, query_y = toy_task(generator)
        outer.zero_grad()
        with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fast, inner_optimiser):
            penalty = torch.zeros(())
            for _ in range(STEPS):
                features = fast.body(support)
                logits = fast.classifier(features)
                penalty = penalty + conditioning_loss(features, logits, support_y) / STEPS
                inner_optimiser.step(F.cross_entropy(logits, support_y))
            (F.cross_entropy(fast(query), query_y) + gamma * penalty).backward()
        outer.step()
    return model


def median_condition_number(model: Perceptron, tasks: int = 100) -> float:
    generator = torch.Generator().manual_seed(1)
    wrapped = FunctionalModule(model)
    kappas = [condition_number(support_gram(wrapped, *toy_task(generator)[:2])) for _ in range(tasks)]
    return torch.stack(kappas).median().item()


def main(updates: int = 300) -> dict[str, float]:
    results = {}
    for name, gamma in (("MAML", 0.0), ("conditioned", 1.0)):
        results[name] = median_condition_number(meta_train(gamma, updates))
        print(f"{name:12} condition number {results[name]:8.0f}")
    return results


if __name__ == "__main__":
    main()
