"""The meta-gradient as the adjoint recursion written out: memory does not grow with the number of steps.

Run the K steps forward and keep the K+1 parameter dicts. Take the gradient v of the query loss at θ(K). Then,
for k = K..1, pull v back through *one* step:

    v ← vjp of [θ ↦ (step(θ), c(G(θ)))] at θ(k-1), with cotangents (v, γ w_k).

Where the query loss after an earlier step counts too, its gradient joins v when the recursion passes there.

This is the chain rule, exact. The pull-back needs what the step computed. As many of the last steps as fit
in the ``memory`` given keep that; the others are computed once more when the recursion gets there, by when
the kept ones are gone. So memory is bounded, whatever K is. One step and its pull-back are two
small pure functions, so a compiler sees two small graphs. The gradient of the rule's own parameters falls
out of the same vjp and is summed over the steps; those that belong to one step are picked before the
function and their gradients put in place after it: its graph serves every step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from firststep.metagradient.compiled import CompiledSteps
from firststep.metagradient.objective import Conditioning
from firststep.metagradient.result import TaskReport, stage_condition_numbers
from firststep.metagradient.steps import EagerSteps, Steps
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule
from firststep.task import Task

# By default so many of the last steps keep what they computed, if so much memory is enough for them. So
# training with 20 steps takes hardly more memory than with the usual 5.
MOST_KEPT = 5
DEFAULT_MEMORY = 3 * 2**27


def _scale(values: Params, factor: float) -> Params:
    return values if factor == 1 else {name: factor * value for name, value in values.items()}


class Stepwise:
    def __init__(
        self,
        model: FunctionalModule,
        rule: Rule,
        steps: int,
        conditioning: Conditioning | None,
        compile: bool = False,
        memory: int | None = None,
    ) -> None:
        self.model = model
        self.rule = rule
        self.steps = steps
        self.conditioning = conditioning
        self.memory = memory
        self.work: Steps = (CompiledSteps if compile else EagerSteps)(model, rule, conditioning)

    def __call__(
        self, params: Params, own: Params, task: Task, query_weights: tuple[float, ...]
    ) -> tuple[Params, Params, TaskReport]:
        images, labels = task.support_x, task.support_y
        pass_through = self._pull_back_is_identity(own)
        keep_from = self.steps if pass_through else self.steps - self._steps_kept(params, own, images, labels)
        stages = [params]
        kept: list[Any] = []
        losses: list[Tensor] = []
        features: list[Tensor] = []
        logits: list[Tensor] = []
        for k in range(self.steps):
            mine = self.rule.at_step(own, k)
            stepped, what_it_computed = self.work.forward(stages[-1], mine, images, labels, k >= keep_from)
            stages.append(stepped.params)
            kept.append(what_it_computed)
            losses.append(stepped.loss)
            features.append(stepped.features)
            logits.append(stepped.logits)
        what_it_computed = None

        query = self.work.query(stages[-1], task.query_x, task.query_y)
        weighted_query_loss = query_weights[-1] * query.loss
        cotangents = _scale(query.gradient, query_weights[-1])

        own_grads = {name: torch.zeros_like(value) for name, value in own.items()}
        penalty = torch.zeros((), dtype=torch.float64, device=query.loss.device)
        grams: list[Tensor | None] = [None] * self.steps
        weights = self.conditioning.weights(self.steps) if self.conditioning else (0.0,) * self.steps
        gamma = self.conditioning.weight if self.conditioning else 0.0
        for k in reversed(range(self.steps)):  # through the step from stage k to stage k+1
            graph = kept.pop()
            if not pass_through:
                if graph is None:
                    mine = self.rule.at_step(own, k)
                    _, graph = self.work.forward(stages[k], mine, images, labels, True)
                weight = torch.tensor(gamma * weights[k], dtype=torch.float64, device=query.loss.device)
                pulled = self.work.pull_back(graph, cotangents, weight)
                graph = None  # what a step computed has served
                cotangents = pulled.params
                self.rule.add_at_step(own_grads, k, pulled.own)
                if pulled.stage_loss is not None:
                    penalty = penalty + weights[k] * pulled.stage_loss
                grams[k] = pulled.gram
            stages.pop()  # and so has θ(k+1)
            if k and query_weights[k - 1]:
                early = self.work.query(stages[k], task.query_x, task.query_y)
                weighted_query_loss = weighted_query_loss + query_weights[k - 1] * early.loss
                extra = _scale(early.gradient, query_weights[k - 1])
                cotangents = {name: value + extra[name] for name, value in cotangents.items()}
        report = TaskReport(
            query_loss=query.loss,
            query_accuracy=query.accuracy,
            weighted_query_loss=weighted_query_loss,
            conditioning=penalty,
            condition_numbers=stage_condition_numbers(grams, features, logits, labels),
            support_losses=torch.stack(losses),
        )
        return cotangents, own_grads, report

    def _steps_kept(self, params: Params, own: Params, images: Tensor, labels: Tensor) -> int:
        """How many of the steps may keep what they computed."""
        if self.memory == 0:
            return 0
        need = self.work.kept_bytes(params, self.rule.at_step(own, 0), images, labels)
        if self.memory is None:
            return min(self.steps, MOST_KEPT, DEFAULT_MEMORY // max(1, need))
        return min(self.steps, self.memory // max(1, need))

    def _pull_back_is_identity(self, own: Params) -> bool:
        """First-order descent without conditioning: the cotangent passes through every step unchanged."""
        return self.rule.first_order and self.conditioning is None and not own
