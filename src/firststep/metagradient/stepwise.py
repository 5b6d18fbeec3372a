"""The meta-gradient as the adjoint recursion written out: memory does not grow with the number of steps.

Run the K steps forward without a graph and keep only the K+1 parameter dicts. Take the gradient v of the
query loss at θ(K). Then, for k = K..1, pull v back through *one* step:

    v ← vjp of [θ ↦ (step(θ), c(G(θ)))] at θ(k-1), with cotangents (v, γ w_k).

Where the query loss after an earlier step counts too, its gradient joins v when the recursion passes there.

This is the chain rule, exact, at the price of computing each step's graph once more. One step and its
pull-back are two small pure functions, so a compiler sees two small graphs whatever K is. The gradient of the
rule's own parameters falls out of the same vjp and is summed over the steps; those that belong to one
step are picked before the function and their gradients put in place after it: its graph serves every step.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.adaptation import inner_step
from firststep.learner import Learner, Params
from firststep.metagradient.compiled import Compiler, Function
from firststep.metagradient.objective import Conditioning
from firststep.metagradient.result import TaskReport, stage_condition_numbers
from firststep.rules import Rule
from firststep.task import Task


class Pulled(NamedTuple):
    """One step's pull-back: cotangents of its inputs, and the conditioning it met."""

    params: Params
    own: Params
    stage_loss: Tensor | None
    gram: Tensor | None


def _as_it_is(function: Function) -> Function:
    return function


def _scale(values: Params, factor: float) -> Params:
    return values if factor == 1 else {name: factor * value for name, value in values.items()}


class Stepwise:
    def __init__(
        self,
        learner: Learner,
        rule: Rule,
        steps: int,
        conditioning: Conditioning | None,
        compile: bool = False,
    ) -> None:
        self.learner = learner
        self.rule = rule
        self.steps = steps
        self.conditioning = conditioning
        prepare = Compiler() if compile else _as_it_is
        self._step = prepare(self._step_eager)
        self._pull_back = prepare(self._pull_back_eager)
        self._query = prepare(self._query_eager)

    def __call__(
        self, params: Params, own: Params, task: Task, query_weights: tuple[float, ...]
    ) -> tuple[Params, Params, TaskReport]:
        images, labels = task.support_images, task.support_labels
        stages = [params]
        losses: list[Tensor] = []
        features: list[Tensor] = []
        logits: list[Tensor] = []
        for k in range(self.steps):
            new, loss, phi, z = self._step(stages[-1], self.rule.at_step(own, k), images, labels)
            stages.append(new)
            losses.append(loss)
            features.append(phi)
            logits.append(z)

        query_loss, query_accuracy, gradient = self._query(stages[-1], task.query_images, task.query_labels)
        weighted_query_loss = query_weights[-1] * query_loss
        cotangents = _scale(gradient, query_weights[-1])

        own_grads = {name: torch.zeros_like(value) for name, value in own.items()}
        penalty = torch.zeros((), dtype=torch.float64, device=query_loss.device)
        grams: list[Tensor | None] = [None] * self.steps
        pass_through = self._pull_back_is_identity(own)
        weights = self.conditioning.weights(self.steps) if self.conditioning else (0.0,) * self.steps
        gamma = self.conditioning.weight if self.conditioning else 0.0
        for k in reversed(range(self.steps)):  # through the step from stage k to stage k+1
            if not pass_through:
                mine = self.rule.at_step(own, k)
                weight = torch.tensor(gamma * weights[k], dtype=torch.float64, device=query_loss.device)
                pulled = self._pull_back(stages[k], mine, cotangents, weight, images, labels)
                cotangents = pulled.params
                self.rule.add_at_step(own_grads, k, pulled.own)
                if pulled.stage_loss is not None:
                    penalty = penalty + weights[k] * pulled.stage_loss
                grams[k] = pulled.gram
            stages.pop()  # θ(k+1) has served
            if k and query_weights[k - 1]:
                loss, _, gradient = self._query(stages[k], task.query_images, task.query_labels)
                weighted_query_loss = weighted_query_loss + query_weights[k - 1] * loss
                early = _scale(gradient, query_weights[k - 1])
                cotangents = {name: value + early[name] for name, value in cotangents.items()}
        report = TaskReport(
            query_loss=query_loss,
            query_accuracy=query_accuracy,
            weighted_query_loss=weighted_query_loss,
            conditioning=penalty,
            condition_numbers=stage_condition_numbers(grams, features, logits, labels),
            support_losses=torch.stack(losses) if losses else query_loss.new_zeros(0),
        )
        return cotangents, own_grads, report

    def _pull_back_is_identity(self, own: Params) -> bool:
        """First-order descent without conditioning: the cotangent passes through every step unchanged."""
        return self.rule.first_order and self.conditioning is None and not own

    # The three pure functions. Dicts of tensors in, tensors out: what a compiler can take whole.

    def _step_eager(
        self, params: Params, own: Params, images: Tensor, labels: Tensor
    ) -> tuple[Params, Tensor, Tensor, Tensor]:
        new, seen = inner_step(self.learner, self.rule, params, own, images, labels)
        return new, seen.loss, seen.features, seen.logits

    def _query_eager(self, params: Params, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Params]:
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        with torch.enable_grad():
            logits = self.learner(theta, images).logits
            loss = F.cross_entropy(logits, labels)
            grads = torch.autograd.grad(loss, list(theta.values()), materialize_grads=True)
        accuracy = (logits.detach().argmax(-1) == labels).double().mean()
        return loss.detach(), accuracy, dict(zip(theta, grads, strict=True))

    def _pull_back_eager(
        self, params: Params, own: Params, cotangents: Params, weight: Tensor, images: Tensor, labels: Tensor
    ) -> Pulled:
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        mine = {name: value.detach().requires_grad_() for name, value in own.items()}
        subset = self.conditioning.subset if self.conditioning else None
        with torch.enable_grad():
            new, seen = inner_step(
                self.learner, self.rule, theta, mine, images, labels, subset=subset, create_graph=True
            )
            outputs = [new[name] for name in cotangents]
            seeds = list(cotangents.values())
            stage_loss = None
            if self.conditioning is not None and seen.gram is not None:
                stage_loss = self.conditioning.stage_loss(seen.gram)
                if stage_loss.requires_grad:
                    outputs.append(stage_loss)
                    seeds.append(weight)
            leaves = [*theta.values(), *mine.values()]
            grads = torch.autograd.grad(outputs, leaves, seeds, materialize_grads=True)
        return Pulled(
            params=dict(zip(theta, grads, strict=False)),
            own=dict(zip(mine, grads[len(theta) :], strict=True)),
            stage_loss=None if stage_loss is None else stage_loss.detach(),
            gram=None if seen.gram is None else seen.gram.detach(),
        )
