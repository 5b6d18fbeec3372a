"""The conditioning loss in somebody else's training loop: plain PyTorch, one import from firststep.

Meta-trains a small perceptron on toy classification tasks with and without the loss, and prints accuracy and
condition number at every inner step. Run: python examples/own_loop.py
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep import classifier_gram, condition_number, conditioning_loss

WAYS, SHOTS, QUERIES, DIMENSIONS, HIDDEN, STEPS, RATE = 5, 5, 10, 16, 64, 3, 0.1
Weights = list[Tensor]


def toy_task(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Noisy points around five random centres, in a space whose axes have very different scales."""
    centres = torch.randn(WAYS, DIMENSIONS, generator=generator)
    labels = torch.arange(WAYS).repeat_interleave(SHOTS + QUERIES)
    points = centres[labels] + 0.7 * torch.randn(len(labels), DIMENSIONS, generator=generator)
    points = points * torch.logspace(0.5, -1.0, DIMENSIONS)
    support = (torch.arange(len(labels)) % (SHOTS + QUERIES)) < SHOTS
    return points[support], labels[support], points[~support], labels[~support]


def network(weights: Weights, points: Tensor) -> tuple[Tensor, Tensor]:
    w1, b1, w2, b2 = weights
    features = F.relu(F.linear(points, w1, b1))
    return features, F.linear(features, w2, b2)


def inner_step(weights: Weights, points: Tensor, labels: Tensor) -> tuple[Weights, Tensor, Tensor]:
    features, logits = network(weights, points)
    grads = torch.autograd.grad(F.cross_entropy(logits, labels), weights, create_graph=True)
    return [w - RATE * g for w, g in zip(weights, grads, strict=True)], features, logits


def meta_train(gamma: float, updates: int, seed: int = 0) -> Weights:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(HIDDEN, DIMENSIONS), (HIDDEN,), (WAYS, HIDDEN), (WAYS,)]
    weights = [
        (torch.randn(shape, generator=generator) / shape[-1] ** 0.5 * (len(shape) == 2)).requires_grad_()
        for shape in shapes
    ]
    optimiser = torch.optim.Adam(weights, 3e-3)
    for _ in range(updates):
        support, support_y, query, query_y = toy_task(generator)
        adapted, penalty = weights, torch.zeros(())
        for _ in range(STEPS):
            adapted, features, logits = inner_step(adapted, support, support_y)
            penalty = penalty + conditioning_loss(features, logits, support_y) / STEPS  # the one line
        loss = F.cross_entropy(network(adapted, query)[1], query_y) + gamma * penalty
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return weights


def evaluate(weights: Weights, tasks: int = 200, seed: int = 1) -> tuple[list[float], float]:
    """Mean query accuracy after 0..STEPS steps, and the median condition number before the first."""
    generator = torch.Generator().manual_seed(seed)
    right = torch.zeros(STEPS + 1)
    kappas = []
    for _ in range(tasks):
        support, support_y, query, query_y = toy_task(generator)
        gram = classifier_gram(*network(weights, support), support_y)
        kappas.append(condition_number(gram).detach())
        adapted = weights
        for step in range(STEPS + 1):
            right[step] += (network(adapted, query)[1].argmax(-1) == query_y).float().mean() / tasks
            adapted, _, _ = inner_step(adapted, support, support_y)
    return right.tolist(), torch.stack(kappas).median().item()


def main(updates: int = 400) -> dict[str, tuple[list[float], float]]:
    results = {}
    print(f"{'':12}" + "".join(f"step {k:<6}" for k in range(STEPS + 1)) + "condition number")
    for name, gamma in (("MAML", 0.0), ("conditioned", 1.0)):
        accuracies, kappa = evaluate(meta_train(gamma, updates))
        print(f"{name:12}" + "".join(f"{100 * a:5.1f} %    " for a in accuracies) + f"{kappa:10.0f}")
        results[name] = accuracies, kappa
    return results


if __name__ == "__main__":
    main()
