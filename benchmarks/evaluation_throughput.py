"""Test episodes a second with all metrics at steps 0..5, beside the loop that one would write; prints JSON.

The loop takes one task after the other and one step after the other, each operation on all cores: forward and
backward pass of the support set, accuracy on the query set, condition number of the classifier.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

import torch
from torch.func import functional_call
from torch.nn import functional as F

from contenders import RATE, model_and_task
from firststep import (
    MetaLearner,
    Task,
    classifier_gram,
    condition_number,
    keep_freed_memory,
    maml,
)
from firststep.evaluation import measure_tasks

STEPS = 5
EPISODES = {"Conv4-32, 28 px": 24, "Conv4-64, 32 px": 12}
OURS, LOOP = "firststep", "one task after the other"


def learner(network: str) -> MetaLearner:
    return MetaLearner(model_and_task(network)[0].module, maml(RATE))


def loop(meta: MetaLearner, tasks: list[Task]) -> None:
    module = meta.network
    for task in tasks:
        theta = {name: value.detach() for name, value in module.named_parameters()}
        for step in range(STEPS + 1):
            with torch.no_grad():
                logits = functional_call(module, theta, (task.query_x,))
                (logits.argmax(-1) == task.query_y).double().mean().item()
                output = meta.functional(theta, task.support_x)
                condition_number(classifier_gram(output.features, output.logits, task.support_y)).item()
            if step < STEPS:
                leaves = {name: value.requires_grad_() for name, value in theta.items()}
                loss = F.cross_entropy(functional_call(module, leaves, (task.support_x,)), task.support_y)
                grads = torch.autograd.grad(loss, list(leaves.values()))
                theta = {
                    name: (value - RATE * grad).detach()
                    for (name, value), grad in zip(leaves.items(), grads, strict=True)
                }


def speed(compute: Callable[[list[Task]], object], task: Task, episodes: int) -> float:
    compute([task] * 4)
    start = time.perf_counter()
    compute([task] * episodes)
    return episodes / (time.perf_counter() - start)


def main() -> dict[str, dict[str, float]]:
    keep_freed_memory()
    found = {}
    for network, episodes in EPISODES.items():
        meta, (_, task) = learner(network), model_and_task(network)
        ours = partial(measure_tasks, meta, steps=range(STEPS + 1))
        found[network] = {OURS: speed(ours, task, episodes), LOOP: speed(partial(loop, meta), task, episodes)}
    return found


if __name__ == "__main__":
    print(json.dumps(main()))
