"""The meta-gradient as an explicit adjoint recursion, whose memory does not grow with the number of steps.

Run the K steps forward and keep the K+1 parameter dicts. Take the gradient v of the query loss at θ(K). Then,
for k = K..1, pull v back through *one* step:

    v ← vjp of [θ ↦ (step(θ), c(G(θ)))] at θ(k-1), with cotangents (v, γ w_k).

A rule with state s, such as momentum, takes a step (θ, s) ↦ (θ', s'), and v has a part for each. If the query
loss after an earlier step counts too, its gradient is added to v at that step.

This is the exact chain rule. The pull-back needs intermediate results of the step. The last steps keep theirs
within the ``memory`` budget. The other steps are recomputed when the recursion reaches them; by then the kept
results have been freed. So memory is bounded for any K.

One step and its pull-back are two small pure functions, so a compiler sees two small graphs. The same vjp
gives the gradient of the rule's parameters, which is summed over the steps. Parameters that belong to one
step are selected before the function, so one graph serves every step.
"""

from __future__ import annotations

from typing import Any

import torch

from firststep.adaptation import Aux
from firststep.conditioning import float64_device
from firststep.metagradient.compiler import CompiledSteps, reaches_deep
from firststep.metagradient.eager import Cotangents, EagerSteps, StepInput, Steps
from firststep.metagradient.objective import Objective
from firststep.metagradient.options import ONLY_EXACT, EngineOptions
from firststep.metagradient.result import TaskReport, build_report
from firststep.network import Params, network_dtype
from firststep.task import Inputs, Targets, Task

# Default: at most this number of last steps keep their results, within this budget. So training with 20 steps
# takes hardly more memory than with the usual 5.
MOST_SAVED = 5
DEFAULT_MEMORY = 3 * 2**27


def _scale(values: Params, factor: float) -> Params:
    return values if factor == 1 else {name: factor * value for name, value in values.items()}


class Stepwise:
    def __init__(self, objective: Objective, options: EngineOptions) -> None:
        self.objective = objective
        self.memory = options.memory
        self.work: Steps = (
            CompiledSteps(objective, options.saved_dtype) if options.compile else EagerSteps(objective)
        )

    def __call__(
        self, params: Params, rule_params: Params, task: Task, query_weights: tuple[float, ...]
    ) -> tuple[Params, Params, TaskReport]:
        x, y = task.support_x, task.support_y
        rule, steps, conditioning = self.objective.rule, self.objective.steps, self.objective.conditioning
        if isinstance(self.work, CompiledSteps):
            if network_dtype() is not None:
                raise ValueError(f"torch.autocast needs compile=False: {ONLY_EXACT}")
            # Compiling all at once takes less time than one by one.
            self.prepare(params, rule_params, task)
        pass_through = self._pull_back_is_identity(rule_params)
        save_from = steps if pass_through else steps - self._steps_saved(params, rule_params, x, y)
        stages = [params]
        states = [rule.initial_state(self.objective.model, params)]
        saved: list[Any] = []
        results: list[Aux] = []
        for k in range(steps):
            start = StepInput(stages[-1], states[-1], rule.at_step(rule_params, k))
            output, saved_step = self.work.forward(start, x, y, k >= save_from)
            stages.append(output.params)
            states.append(output.state)
            saved.append(saved_step)
            results.append(Aux(output.loss, output.features, output.logits, None, {}))
        saved_step = None

        query = self.work.query(stages[-1], task.query_x, task.query_y)
        weighted_query_loss = query_weights[-1] * query.loss
        cotangents = Cotangents(
            _scale(query.gradient, query_weights[-1]),
            {name: torch.zeros_like(value) for name, value in states.pop().items()},
        )

        rule_grads = {name: torch.zeros_like(value) for name, value in rule_params.items()}
        zero = torch.zeros((), dtype=torch.float64, device=float64_device(query.loss.device))
        conditioning_loss = zero
        weights = conditioning.weights(steps) if conditioning else (0.0,) * steps
        gamma = conditioning.weight if conditioning else 0.0
        for k in reversed(range(steps)):  # through the step from stage k to stage k+1
            saved_step = saved.pop()
            if not pass_through:
                if saved_step is None:
                    start = StepInput(stages[k], states[k], rule.at_step(rule_params, k))
                    _, saved_step = self.work.forward(start, x, y, True)
                weight = zero + gamma * weights[k]
                step = self.work.pull_back(saved_step, cotangents, weight)
                saved_step = None  # frees its memory
                cotangents = Cotangents(step.params, step.state)
                rule.add_at_step(rule_grads, k, step.rule_params)
                if step.conditioning_loss is not None:
                    conditioning_loss = conditioning_loss + weights[k] * step.conditioning_loss
                results[k] = results[k]._replace(gram=step.gram)
            stages.pop()  # θ(k+1) is no longer needed
            states.pop()
            if k and query_weights[k - 1]:
                early = self.work.query(stages[k], task.query_x, task.query_y)
                weighted_query_loss = weighted_query_loss + query_weights[k - 1] * early.loss
                extra = _scale(early.gradient, query_weights[k - 1])
                cotangents = cotangents._replace(
                    params={name: value + extra[name] for name, value in cotangents.params.items()}
                )
        report = build_report(
            results,
            y,
            self.objective.losses.support,
            query_loss=query.loss,
            query_accuracy=query.accuracy,
            weighted_query_loss=weighted_query_loss,
            conditioning=conditioning_loss,
        )
        return self._with_initial_state(params, cotangents), rule_grads, report

    def prepare(self, params: Params, rule_params: Params, task: Task) -> None:
        """Compile the functions for a task of these shapes, for the current number of threads."""
        self.work.prepare(
            self._first(params, rule_params), task.support_x, task.support_y, task.query_x, task.query_y
        )

    def _first(self, params: Params, rule_params: Params) -> StepInput:
        state = self.objective.rule.initial_state(self.objective.model, params)
        return StepInput(params, state, self.objective.rule.at_step(rule_params, 0))

    def _with_initial_state(self, params: Params, cotangents: Cotangents) -> Params:
        """Return the gradient of θ(0), including the part through an initial state that depends on θ(0)."""
        if not cotangents.state:
            return cotangents.params
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        with torch.enable_grad():
            state = self.objective.rule.initial_state(self.objective.model, theta)
        reached = [(value, cotangents.state[name]) for name, value in state.items() if value.requires_grad]
        if not reached:
            return cotangents.params
        values, seeds = zip(*reached, strict=True)
        grads = torch.autograd.grad(values, list(theta.values()), seeds, materialize_grads=True)
        return {
            name: value + grad for (name, value), grad in zip(cotangents.params.items(), grads, strict=True)
        }

    def shares_cores(self) -> bool:
        """Return whether tasks may run side by side; conditioning on all layers needs too much memory."""
        conditioning = self.objective.conditioning
        return conditioning is None or not reaches_deep(self.objective.model, conditioning.subset)

    def _steps_saved(self, params: Params, rule_params: Params, x: Inputs, y: Targets) -> int:
        """Return the number of steps that may keep their results."""
        if self.memory == 0:
            return 0
        need = self.work.saved_bytes(self._first(params, rule_params), x, y)
        if self.memory is None:
            return min(self.objective.steps, MOST_SAVED, DEFAULT_MEMORY // max(1, need))
        return min(self.objective.steps, self.memory // max(1, need))

    def _pull_back_is_identity(self, rule_params: Params) -> bool:
        """Return whether v passes unchanged through every step: first-order descent without conditioning."""
        rule = self.objective.rule
        unchanged = self.objective.conditioning is None and not rule_params and rule.init_state is None
        return rule.first_order and unchanged
