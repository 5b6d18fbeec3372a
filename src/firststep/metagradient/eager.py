"""One inner step and its pull-back: the interface that the recursion uses, and its form without a compiler.

``forward`` gives the new parameters and what a later ``pull_back`` needs (``saved``), which may be dropped
and computed again by another ``forward``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from firststep.adaptation import detached, inner_step
from firststep.conditioning import counting_saved
from firststep.metagradient.objective import Objective
from firststep.network import Params
from firststep.task import Inputs, Targets


class StepInput(NamedTuple):
    """What a step starts from."""

    params: Params
    state: Params
    """Of the rule; empty for a rule without state."""
    rule_params: Params
    """Those of this step."""


class StepOutput(NamedTuple):
    """One step forward; detached tensors."""

    params: Params
    state: Params
    loss: Tensor
    features: Tensor | None
    logits: Any


class Cotangents(NamedTuple):
    """Of what a step gives: parameters and state."""

    params: Params
    state: Params


class StepGradients(NamedTuple):
    """One step's pull-back: cotangents of its inputs, and its conditioning."""

    params: Params
    state: Params
    rule_params: Params
    conditioning_loss: Tensor | None
    gram: Tensor | None


class QueryGradient(NamedTuple):
    loss: Tensor
    accuracy: Tensor
    gradient: Params


class Steps(Protocol):
    """The three computations that a meta-gradient is made of."""

    def forward(self, start: StepInput, x: Inputs, y: Targets, save: bool) -> tuple[StepOutput, Any]: ...

    def pull_back(self, saved: Any, cotangents: Cotangents, weight: Tensor) -> StepGradients: ...

    def query(self, params: Params, x: Inputs, y: Targets) -> QueryGradient: ...

    def saved_bytes(self, start: StepInput, x: Inputs, y: Targets) -> int:
        """The memory that one saved step of these shapes takes."""
        ...

    def prepare(self, start: StepInput, x: Inputs, y: Targets, query_x: Inputs, query_y: Targets) -> None:
        """Make now what later calls with such inputs share."""
        ...


class StepGraph(NamedTuple):
    """A step with its autograd graph."""

    params: Params
    state: Params
    rule_params: Params
    new: Params
    new_state: Params
    conditioning_loss: Tensor | None
    gram: Tensor | None


class EagerSteps:
    """With autograd, operation by operation."""

    def __init__(self, objective: Objective, gram_in_graph: bool = False) -> None:
        self.objective = objective
        self.gram_in_graph = gram_in_graph  # for tracing, where this graph takes no memory
        self._bytes: dict[Any, int] = {}

    def forward(
        self, start: StepInput, x: Inputs, y: Targets, save: bool
    ) -> tuple[StepOutput, StepGraph | None]:
        objective = self.objective
        if not save:
            learner = objective.learner(start.params, start.rule_params)
            new, aux = inner_step(learner, x, y, state=start.state)
            return StepOutput(new, aux.state, aux.loss, aux.features, aux.logits), None
        theta, state, phi = (
            {name: value.detach().requires_grad_() for name, value in part.items()} for part in start
        )
        with torch.enable_grad():
            new, aux = inner_step(
                objective.learner(theta, phi),
                x,
                y,
                state=state,
                create_graph=True,
                gram_in_graph=self.gram_in_graph,
                **objective.gram,
            )
            conditioning_loss = None
            if objective.conditioning is not None and aux.gram is not None:
                conditioning_loss = objective.conditioning.conditioning_loss(aux.gram)
        free = detached(aux)
        output = StepOutput(
            {name: value.detach() for name, value in new.items()},
            free.state,
            free.loss,
            free.features,
            free.logits,
        )
        return output, StepGraph(theta, state, phi, new, aux.state, conditioning_loss, aux.gram)

    def pull_back(self, saved: StepGraph, cotangents: Cotangents, weight: Tensor) -> StepGradients:
        outputs = [saved.new[name] for name in cotangents.params]
        seeds = list(cotangents.params.values())
        for name, value in saved.new_state.items():
            if value.requires_grad:  # not the number of steps taken
                outputs.append(value)
                seeds.append(cotangents.state[name])
        if saved.conditioning_loss is not None and saved.conditioning_loss.requires_grad:
            outputs.append(saved.conditioning_loss)
            seeds.append(weight)
        leaves = [*saved.params.values(), *saved.rule_params.values(), *saved.state.values()]
        grads = torch.autograd.grad(outputs, leaves, seeds, materialize_grads=True)
        of_rule = grads[len(saved.params) :]
        return StepGradients(
            params=dict(zip(saved.params, grads, strict=False)),
            state=dict(zip(saved.state, of_rule[len(saved.rule_params) :], strict=True)),
            rule_params=dict(zip(saved.rule_params, of_rule, strict=False)),
            conditioning_loss=None if saved.conditioning_loss is None else saved.conditioning_loss.detach(),
            gram=None if saved.gram is None else saved.gram.detach(),
        )

    def query(self, params: Params, x: Inputs, y: Targets) -> QueryGradient:
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        with torch.enable_grad():
            output = self.objective.model(theta, x).logits
            loss = self.objective.losses.query.mean(output, y)
            grads = torch.autograd.grad(loss, list(theta.values()), materialize_grads=True)
        accuracy = self.objective.losses.accuracy(output, y)
        return QueryGradient(loss.detach(), accuracy, dict(zip(theta, grads, strict=True)))

    def saved_bytes(self, start: StepInput, x: Inputs, y: Targets) -> int:
        key = input_form(x)
        if key not in self._bytes:
            with counting_saved() as saved:
                self.forward(start, x, y, save=True)
            self._bytes[key] = saved.bytes
        return self._bytes[key]

    def prepare(self, start: StepInput, x: Inputs, y: Targets, query_x: Inputs, query_y: Targets) -> None:
        self.saved_bytes(start, x, y)


def input_form(x: Inputs) -> tuple[Any, ...]:
    """Shapes, types and devices of a batch: what memory and compiled code depend on."""
    if isinstance(x, Tensor):
        return x.shape, x.dtype, x.device
    parts = enumerate(x) if isinstance(x, tuple) else x.items()
    return tuple((key, *input_form(part)) if isinstance(part, Tensor) else (key, part) for key, part in parts)
