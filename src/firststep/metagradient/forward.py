"""The outer loss of a task without its gradient: for evaluation."""

from __future__ import annotations

from itertools import islice

import torch
from torch import Tensor

from firststep.adaptation import Aux, steps_from
from firststep.conditioning import float64_device
from firststep.losses import first_tensor
from firststep.metagradient.objective import Objective
from firststep.metagradient.result import TaskReport, build_report
from firststep.network import Params
from firststep.task import Task


def task_report(
    objective: Objective, params: Params, rule_params: Params, task: Task, query_weights: tuple[float, ...]
) -> TaskReport:
    """Return the report of a task at θ(0) as the engines give it, in the memory of one inner step."""
    losses, conditioning, steps = objective.losses, objective.conditioning, objective.steps
    stages: list[Aux] = []
    query_losses: list[tuple[float, Tensor]] = []
    learner = objective.learner(params, rule_params)
    trajectory = steps_from(learner, task.support_x, task.support_y, **objective.gram)
    with torch.no_grad():
        for step, (theta, aux) in enumerate(islice(trajectory, steps), start=1):
            stages.append(aux)
            if query_weights[step - 1] or step == steps:
                output = objective.model(theta, task.query_x).logits
                query_losses.append((query_weights[step - 1], losses.query.mean(output, task.query_y)))
        device = float64_device(first_tensor(task.query_y).device)
        conditioning_loss = torch.zeros((), dtype=torch.float64, device=device)
        if conditioning is not None:
            weights = conditioning.weights(steps)
            # From last to first, the order of the adjoint recursion, so that rounding is the same.
            for weight, aux in zip(reversed(weights), reversed(stages), strict=True):
                assert aux.gram is not None
                conditioning_loss = conditioning_loss + weight * conditioning.conditioning_loss(aux.gram)
        weighted = [weight * loss for weight, loss in reversed(query_losses)]
    return build_report(
        stages,
        task.support_y,
        losses.support,
        query_loss=query_losses[-1][1],
        query_accuracy=losses.accuracy(output, task.query_y),
        weighted_query_loss=sum(weighted[1:], weighted[0]),
        conditioning=conditioning_loss,
    )
