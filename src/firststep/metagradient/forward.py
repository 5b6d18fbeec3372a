"""The outer loss of a task without its gradient: for evaluation."""

from __future__ import annotations

from itertools import islice

import torch
from torch import Tensor

from firststep.adaptation import Aux, iterate_steps
from firststep.losses import first_tensor
from firststep.metagradient.objective import Conditioning, Losses
from firststep.metagradient.result import TaskReport, stage_condition_numbers
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule
from firststep.task import Task


def task_report(
    model: FunctionalModule,
    rule: Rule,
    conditioning: Conditioning | None,
    losses: Losses,
    params: Params,
    rule_params: Params,
    task: Task,
    query_weights: tuple[float, ...],
) -> TaskReport:
    """The report of a task as the engines give it, in the memory of one inner step."""
    steps = len(query_weights)
    subset = conditioning.subset if conditioning else None
    stages: list[Aux] = []
    query_losses: list[tuple[float, Tensor]] = []
    trajectory = iterate_steps(
        model,
        rule,
        params,
        rule_params,
        task.support_x,
        task.support_y,
        loss=losses.support,
        subset=subset,
        residuals=conditioning.chosen_residuals if conditioning else None,
    )
    with torch.no_grad():
        for step, (theta, aux) in enumerate(islice(trajectory, steps), start=1):
            stages.append(aux)
            if query_weights[step - 1] or step == steps:
                output = model(theta, task.query_x).logits
                query_losses.append((query_weights[step - 1], losses.query.mean(output, task.query_y)))
        device = first_tensor(task.query_y).device
        conditioning_loss = torch.zeros((), dtype=torch.float64, device=device)
        if conditioning is not None:
            weights = conditioning.weights(steps)
            # From the last to the first, as the adjoint recursion adds them up: the same rounding.
            for weight, aux in zip(reversed(weights), reversed(stages), strict=True):
                assert aux.gram is not None
                conditioning_loss = conditioning_loss + weight * conditioning.conditioning_loss(aux.gram)
        weighted = [weight * loss for weight, loss in reversed(query_losses)]
    return TaskReport(
        query_loss=query_losses[-1][1],
        query_accuracy=losses.accuracy(output, task.query_y),
        weighted_query_loss=sum(weighted[1:], weighted[0]),
        conditioning=conditioning_loss,
        condition_numbers=stage_condition_numbers(
            [aux.gram for aux in stages],
            [aux.features for aux in stages],
            [aux.logits for aux in stages],
            task.support_y,
            losses.support,
        ),
        support_losses=torch.stack([aux.loss for aux in stages]),
    )
