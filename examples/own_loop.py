"""The conditioning loss in somebody else's training loop: plain PyTorch, one import from firststep.

Meta-trains a small perceptron on toy classification tasks with and without the loss, and prints the accuracy
after every inner step and the condition number before the first. Run: python examples/own_loop.py
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from firststep import watch
from toy import RATE, STEPS, Perceptron, ToyTask, adapted_accuracy, meta_train, toy_task

Params = dict[str, Tensor]


def outer_loss(model: Perceptron, task: ToyTask, gamma: float) -> Tensor:
    """Return MAML's loss of one task plus the conditioning loss of its support set at every step."""
    support, support_y, query, query_y = task
    params: Params = dict(model.named_parameters())
    conditioning_loss = torch.zeros(())
    with watch(model.classifier) as classifier:
        for _ in range(STEPS):
            loss = F.cross_entropy(functional_call(model, params, (support,)), support_y)
            conditioning_loss = conditioning_loss + classifier.loss(support_y) / STEPS  # the one line
            grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
            params = {name: p - RATE * g for (name, p), g in zip(params.items(), grads, strict=True)}
    return F.cross_entropy(functional_call(model, params, (query,)), query_y) + gamma * conditioning_loss


@torch.no_grad()
def median_condition_number(model: Perceptron, tasks: int = 100) -> float:
    generator = torch.Generator().manual_seed(1)
    kappas = []
    with watch(model.classifier) as classifier:
        for _ in range(tasks):
            support, support_y, _, _ = toy_task(generator)
            model(support)
            kappas.append(classifier.condition_number(support_y))
    return torch.stack(kappas).median().item()


def main(updates: int = 400) -> dict[str, tuple[list[float], float]]:
    results = {}
    print(f"{'':12}" + "".join(f"step {k:<6}" for k in range(STEPS + 1)) + "condition number")
    for name, gamma in (("MAML", 0.0), ("conditioned", 1.0)):
        model = meta_train(outer_loss, gamma, updates)
        accuracies, kappa = adapted_accuracy(model), median_condition_number(model)
        print(f"{name:12}" + "".join(f"{100 * a:5.1f} %    " for a in accuracies) + f"{kappa:10.0f}")
        results[name] = accuracies, kappa
    return results


if __name__ == "__main__":
    main()
