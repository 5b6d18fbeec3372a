"""The meta-gradient by one big autograd graph over all steps: simple, and as large as K is long.

It is the reference that the stepwise form is tested against, and an option for the curious.
"""

from __future__ import annotations

import torch
from torch import Tensor

from firststep.adaptation import adapt
from firststep.metagradient.objective import Conditioning, Losses
from firststep.metagradient.result import TaskReport, stage_condition_numbers
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule
from firststep.task import Task


class Unrolled:
    def __init__(
        self,
        model: FunctionalModule,
        rule: Rule,
        steps: int,
        conditioning: Conditioning | None,
        losses: Losses,
    ) -> None:
        self.model = model
        self.rule = rule
        self.steps = steps
        self.conditioning = conditioning
        self.losses = losses

    def prepare(self, params: Params, rule_params: Params, task: Task) -> None:
        """Nothing is compiled."""

    def __call__(
        self, params: Params, rule_params: Params, task: Task, query_weights: tuple[float, ...]
    ) -> tuple[Params, Params, TaskReport]:
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        phi = {name: value.detach().requires_grad_() for name, value in rule_params.items()}
        conditioning = self.conditioning
        with torch.enable_grad():
            trajectory = adapt(
                self.model,
                self.rule,
                task.support_x,
                task.support_y,
                steps=self.steps,
                params=theta,
                rule_params=phi,
                loss=self.losses.support,
                subset=conditioning.subset if conditioning else None,
                residuals=conditioning.chosen_residuals if conditioning else None,
                create_graph=True,
            )
            output = self.model(trajectory.adapted, task.query_x).logits
            query_loss = self.losses.query.mean(output, task.query_y)
            weighted_query_loss = query_weights[-1] * query_loss
            for weight, stage in zip(query_weights[:-1], trajectory.params[1:-1], strict=True):
                if weight:
                    early = self.losses.query.mean(self.model(stage, task.query_x).logits, task.query_y)
                    weighted_query_loss = weighted_query_loss + weight * early
            loss: Tensor = weighted_query_loss
            conditioning_loss = torch.zeros((), dtype=torch.float64, device=query_loss.device)
            if conditioning:
                for weight, aux in zip(conditioning.weights(self.steps), trajectory.aux, strict=True):
                    assert aux.gram is not None
                    conditioning_loss = conditioning_loss + weight * conditioning.conditioning_loss(aux.gram)
                loss = loss + conditioning.weight * conditioning_loss
            leaves = [*theta.values(), *phi.values()]
            grads = torch.autograd.grad(loss, leaves, materialize_grads=True)
        stages = trajectory.aux
        report = TaskReport(
            query_loss=query_loss.detach(),
            weighted_query_loss=weighted_query_loss.detach(),
            query_accuracy=self.losses.accuracy(output, task.query_y),
            conditioning=conditioning_loss.detach(),
            condition_numbers=stage_condition_numbers(
                [aux.gram for aux in stages],
                [aux.features for aux in stages],
                [aux.logits for aux in stages],
                task.support_y,
                self.losses.support,
            ),
            support_losses=_stack([aux.loss.detach() for aux in stages], like=query_loss),
        )
        return (
            dict(zip(theta, grads, strict=False)),
            dict(zip(phi, grads[len(theta) :], strict=True)),
            report,
        )


def _stack(values: list[Tensor], like: Tensor) -> Tensor:
    return torch.stack(values) if values else like.new_zeros(0)
