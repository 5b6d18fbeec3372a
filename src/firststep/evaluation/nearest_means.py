"""The simplest few-shot classifier: the class whose mean support feature is nearest."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from firststep.network import FunctionalModule
from firststep.task import Task


@torch.no_grad()
def nearest_means_accuracy(network: FunctionalModule, task: Task) -> float:
    """Part of the queries that it classifies right, on the network's features scaled to length one."""
    params = network.params()
    support = F.normalize(network(params, task.support_x).features, dim=1)
    query = F.normalize(network(params, task.query_x).features, dim=1)
    means = torch.stack([support[task.support_y == label].mean(0) for label in task.support_y.unique()])
    nearest = task.support_y.unique()[torch.cdist(query, means).argmin(1)]
    return (nearest == task.query_y).double().mean().item()
