"""One inner step and its pull-back: the interface of the adjoint recursion, and its uncompiled form.

``forward`` returns the new parameters and ``saved``, the tensors that a later ``pull_back`` needs. They may
be dropped and recomputed by another ``forward``.
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
    """The inputs of a step."""

    params: Params
    state: Params
    """State of the rule; empty for a rule without state."""
    rule_params: Params
    """The rule's parameters for this step."""


class StepOutput(NamedTuple):
    """The results of a step, detached."""

    params: Params
    state: Params
    loss: Tensor
    features: Tensor | None
    logits: Any


class Cotangents(NamedTuple):
    """Upstream gradients of a step's results: of the parameters and of the state."""

    params: Params
    state: Params


class StepGradients(NamedTuple):
    """The results of a step's pull-back: gradients of its inputs, and its conditioning loss."""

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
    """The three computations of a meta-gradient."""

    def forward(self, start: StepInput, x: Inputs, y: Targets, save: bool) -> tuple[StepOutput, Any]: ...

    def pull_back(self, saved: Any, cotangents: Cotangents, weight: Tensor) -> StepGradients: ...

    def query(self, params: Params, x: Inputs, y: Targets) -> QueryGradient: ...

    def saved_bytes(self, start: StepInput, x: Inputs, y: Targets) -> int:
        """Return the memory that one saved step of these shapes takes."""
        ...

    def prepare(self, start: StepInput, x: Inputs, y: Targets, query_x: Inputs, query_y: Targets) -> None:
        """Compile or prepare what later calls with such inputs share."""
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
    """Steps by autograd, operation by operation."""

    def __init__(self, objective: Objective, gram_in_graph: bool = False) -> None:
        self.objective = objective
        self.gram_in_graph = gram_in_graph  # only for tracing, where this graph takes no memory
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
            if value.requires_grad:  # integer state, such as a step count, has no gradient
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
    """Return shapes, dtypes and devices of a batch, on which memory and compiled code depend."""
    if isinstance(x, Tensor):
        return x.shape, x.dtype, x.device
    parts = enumerate(x) if isinstance(x, tuple) else x.items()
    return tuple((key, *input_form(part)) if isinstance(part, Tensor) else (key, part) for key, part in parts)
