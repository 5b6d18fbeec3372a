"""The conditioning loss in a loop written with ``torch.func``: all tasks at once by ``vmap``.

Run: python examples/with_torch_func.py
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from firststep import watch
from own_loop import median_condition_number
from toy import RATE, STEPS, Perceptron, ToyTask, meta_train

Params = dict[str, Tensor]


def outer_losses(model: Perceptron, tasks: ToyTask, gamma: float) -> Tensor:
    """Return MAML's loss per task plus the conditioning loss of its support set at every step.

    ``tasks`` is one task whose tensors have a first dimension for the tasks.
    """

    def of_one_task(support: Tensor, support_y: Tensor, query: Tensor, query_y: Tensor) -> Tensor:
        def support_loss(params: Params) -> tuple[Tensor, Tensor]:
            loss = F.cross_entropy(functional_call(model, params, (support,)), support_y)
            return loss, classifier.loss(support_y)

        params: Params = dict(model.named_parameters())
        conditioning_loss = torch.zeros((), dtype=torch.float64)
        for _ in range(STEPS):
            grads, conditioning = grad(support_loss, has_aux=True)(params)
            conditioning_loss = conditioning_loss + conditioning / STEPS
            params = {name: value - RATE * grads[name] for name, value in params.items()}
        return F.cross_entropy(functional_call(model, params, (query,)), query_y) + gamma * conditioning_loss

    with watch(model.classifier) as classifier:
        losses: Tensor = vmap(of_one_task)(*tasks)
    return losses


def outer_loss(model: Perceptron, task: ToyTask, gamma: float) -> Tensor:
    support, support_y, query, query_y = (part.unsqueeze(0) for part in task)
    return outer_losses(model, (support, support_y, query, query_y), gamma).sum()


def main(updates: int = 300) -> dict[str, float]:
    results = {}
    for name, gamma in (("MAML", 0.0), ("conditioned", 1.0)):
        results[name] = median_condition_number(meta_train(outer_loss, gamma, updates))
        print(f"{name:12} condition number {results[name]:8.0f}")
    return results


if __name__ == "__main__":
    main()
