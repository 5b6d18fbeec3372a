"""The conditioning loss in a loop written with the library ``higher`` (a development dependency).

``higher`` patches a module so that its inner steps are differentiable. Call the patched module as a whole:
its parts, called by themselves, would start from the initial parameters again. So watch its classifier.
Run: python examples/with_higher.py
"""

from __future__ import annotations

import higher
import torch
from torch import Tensor
from torch.nn import functional as F

from firststep import watch
from own_loop import median_condition_number
from toy import RATE, STEPS, Perceptron, ToyTask, meta_train


def outer_loss(model: Perceptron, task: ToyTask, gamma: float) -> Tensor:
    """Return MAML's loss of one task plus the conditioning loss of its support set at every step."""
    support, support_y, query, query_y = task
    inner = torch.optim.SGD(model.parameters(), RATE)
    conditioning_loss = torch.zeros(())
    with (
        higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fast, inner_optimiser),
        watch(fast.classifier) as classifier,
    ):
        for _ in range(STEPS):
            loss = F.cross_entropy(fast(support), support_y)
            conditioning_loss = conditioning_loss + classifier.loss(support_y) / STEPS
            inner_optimiser.step(loss)
        return F.cross_entropy(fast(query), query_y) + gamma * conditioning_loss


def main(updates: int = 300) -> dict[str, float]:
    results = {}
    for name, gamma in (("MAML", 0.0), ("conditioned", 1.0)):
        results[name] = median_condition_number(meta_train(outer_loss, gamma, updates))
        print(f"{name:12} condition number {results[name]:8.0f}")
    return results


if __name__ == "__main__":
    main()
