"""The conditioning loss in a loop written with ``torchopt`` (a development dependency).

``torchopt.MetaSGD`` takes differentiable inner steps on the module itself, whose state is put back after each
task. Run: python examples/with_torchopt.py
"""

from __future__ import annotations

import torch
import torchopt
from torch import Tensor
from torch.nn import functional as F

from firststep import watch
from own_loop import median_condition_number
from toy import RATE, STEPS, Perceptron, ToyTask, meta_train


def outer_loss(model: Perceptron, task: ToyTask, gamma: float) -> Tensor:
    """Return MAML's loss of one task plus the conditioning loss of its support set at every step."""
    support, support_y, query, query_y = task
    inner = torchopt.MetaSGD(model, lr=RATE)
    initial = torchopt.extract_state_dict(model, by="reference")
    conditioning_loss = torch.zeros(())
    with watch(model.classifier) as classifier:
        for _ in range(STEPS):
            support_loss = F.cross_entropy(model(support), support_y)
            conditioning_loss = conditioning_loss + classifier.loss(support_y) / STEPS
            inner.step(support_loss)
    loss = F.cross_entropy(model(query), query_y) + gamma * conditioning_loss
    torchopt.recover_state_dict(model, initial)
    return loss


def main(updates: int = 300) -> dict[str, float]:
    results = {}
    for name, gamma in (("MAML", 0.0), ("conditioned", 1.0)):
        results[name] = median_condition_number(meta_train(outer_loss, gamma, updates))
        print(f"{name:12} condition number {results[name]:8.0f}")
    return results


if __name__ == "__main__":
    main()
