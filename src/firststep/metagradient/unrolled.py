"""The meta-gradient as one large autograd graph over all steps: simple, but its memory grows with K.

It is the reference for tests of the stepwise engine, and an option for comparisons.
"""

from __future__ import annotations

from itertools import islice

import torch
from torch import Tensor

from firststep.adaptation import steps_from
from firststep.conditioning import float64_device, in_float64
from firststep.metagradient.objective import Objective
from firststep.metagradient.result import TaskReport, build_report
from firststep.network import Params
from firststep.task import Task


class Unrolled:
    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def prepare(self, params: Params, rule_params: Params, task: Task) -> None:
        """Do nothing, because nothing is compiled."""

    def __call__(
        self, params: Params, rule_params: Params, task: Task, query_weights: tuple[float, ...]
    ) -> tuple[Params, Params, TaskReport]:
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        phi = {name: value.detach().requires_grad_() for name, value in rule_params.items()}
        model, losses, conditioning = self.objective.model, self.objective.losses, self.objective.conditioning
        with torch.enable_grad():
            taken = steps_from(
                self.objective.learner(theta, phi),
                task.support_x,
                task.support_y,
                create_graph=True,
                **self.objective.gram,
            )
            stages, results = zip(*islice(taken, self.objective.steps), strict=True)
            output = model(stages[-1], task.query_x).logits
            query_loss = losses.query.mean(output, task.query_y)
            weighted_query_loss = query_weights[-1] * query_loss
            for weight, stage in zip(query_weights[:-1], stages[:-1], strict=True):
                if weight:
                    early = losses.query.mean(model(stage, task.query_x).logits, task.query_y)
                    weighted_query_loss = weighted_query_loss + weight * early
            loss: Tensor = weighted_query_loss
            conditioning_loss = torch.zeros((), dtype=torch.float64, device=float64_device(query_loss.device))
            if conditioning:
                for weight, aux in zip(conditioning.weights(self.objective.steps), results, strict=True):
                    assert aux.gram is not None
                    conditioning_loss = conditioning_loss + weight * conditioning.conditioning_loss(aux.gram)
                loss = in_float64(loss) + conditioning.weight * conditioning_loss
            leaves = [*theta.values(), *phi.values()]
            grads = torch.autograd.grad(loss, leaves, materialize_grads=True)
        report = build_report(
            results,
            task.support_y,
            losses.support,
            query_loss=query_loss,
            query_accuracy=losses.accuracy(output, task.query_y),
            weighted_query_loss=weighted_query_loss,
            conditioning=conditioning_loss,
        )
        return (
            dict(zip(theta, grads, strict=False)),
            dict(zip(phi, grads[len(theta) :], strict=True)),
            report,
        )
