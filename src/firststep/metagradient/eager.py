"""One inner step and its pull-back: the interface that the recursion uses, and its form without a compiler.

``forward`` gives the new parameters and what a later ``pull_back`` needs (``saved``), which may be dropped
and computed again by another ``forward``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.adaptation import inner_step
from firststep.conditioning import counting_saved
from firststep.metagradient.objective import Conditioning
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule
from firststep.task import Inputs


class StepOutput(NamedTuple):
    """One step forward; detached tensors."""

    params: Params
    loss: Tensor
    features: Tensor
    logits: Tensor


class StepGradients(NamedTuple):
    """One step's pull-back: cotangents of its inputs, and its conditioning."""

    params: Params
    rule_params: Params
    conditioning_loss: Tensor | None
    gram: Tensor | None


class QueryGradient(NamedTuple):
    loss: Tensor
    accuracy: Tensor
    gradient: Params


class Steps(Protocol):
    """The three computations that a meta-gradient is made of."""

    def forward(
        self, params: Params, rule_params: Params, x: Inputs, y: Tensor, save: bool
    ) -> tuple[StepOutput, Any]: ...

    def pull_back(self, saved: Any, cotangents: Params, weight: Tensor) -> StepGradients: ...

    def query(self, params: Params, x: Inputs, y: Tensor) -> QueryGradient: ...

    def saved_bytes(self, params: Params, rule_params: Params, x: Inputs, y: Tensor) -> int:
        """The memory that one saved step of these shapes takes."""
        ...

    def prepare(
        self, params: Params, rule_params: Params, x: Inputs, y: Tensor, query_x: Inputs, query_y: Tensor
    ) -> None:
        """Make now what later calls with such inputs share."""
        ...


class StepGraph(NamedTuple):
    """A step with its autograd graph."""

    params: Params
    rule_params: Params
    new: Params
    conditioning_loss: Tensor | None
    gram: Tensor | None


class EagerSteps:
    """With autograd, operation by operation."""

    def __init__(
        self,
        model: FunctionalModule,
        rule: Rule,
        conditioning: Conditioning | None,
        gram_in_graph: bool = False,
    ) -> None:
        self.model = model
        self.rule = rule
        self.conditioning = conditioning
        self.gram_in_graph = gram_in_graph  # for tracing, where this graph takes no memory
        self._bytes: dict[Any, int] = {}

    def forward(
        self, params: Params, rule_params: Params, x: Inputs, y: Tensor, save: bool
    ) -> tuple[StepOutput, StepGraph | None]:
        if not save:
            new, aux = inner_step(self.model, self.rule, params, rule_params, x, y)
            return StepOutput(new, aux.loss, aux.features, aux.logits), None
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        phi = {name: value.detach().requires_grad_() for name, value in rule_params.items()}
        subset = self.conditioning.subset if self.conditioning else None
        with torch.enable_grad():
            new, aux = inner_step(
                self.model,
                self.rule,
                theta,
                phi,
                x,
                y,
                subset=subset,
                create_graph=True,
                gram_in_graph=self.gram_in_graph,
            )
            conditioning_loss = None
            if self.conditioning is not None and aux.gram is not None:
                conditioning_loss = self.conditioning.conditioning_loss(aux.gram)
        output = StepOutput(
            {name: value.detach() for name, value in new.items()},
            aux.loss.detach(),
            aux.features.detach(),
            aux.logits.detach(),
        )
        return output, StepGraph(theta, phi, new, conditioning_loss, aux.gram)

    def pull_back(self, saved: StepGraph, cotangents: Params, weight: Tensor) -> StepGradients:
        outputs = [saved.new[name] for name in cotangents]
        seeds = list(cotangents.values())
        if saved.conditioning_loss is not None and saved.conditioning_loss.requires_grad:
            outputs.append(saved.conditioning_loss)
            seeds.append(weight)
        leaves = [*saved.params.values(), *saved.rule_params.values()]
        grads = torch.autograd.grad(outputs, leaves, seeds, materialize_grads=True)
        return StepGradients(
            params=dict(zip(saved.params, grads, strict=False)),
            rule_params=dict(zip(saved.rule_params, grads[len(saved.params) :], strict=True)),
            conditioning_loss=None if saved.conditioning_loss is None else saved.conditioning_loss.detach(),
            gram=None if saved.gram is None else saved.gram.detach(),
        )

    def query(self, params: Params, x: Inputs, y: Tensor) -> QueryGradient:
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        with torch.enable_grad():
            logits = self.model(theta, x).logits
            loss = F.cross_entropy(logits, y)
            grads = torch.autograd.grad(loss, list(theta.values()), materialize_grads=True)
        accuracy = (logits.detach().argmax(-1) == y).double().mean()
        return QueryGradient(loss.detach(), accuracy, dict(zip(theta, grads, strict=True)))

    def saved_bytes(self, params: Params, rule_params: Params, x: Inputs, y: Tensor) -> int:
        key = input_form(x)
        if key not in self._bytes:
            with counting_saved() as saved:
                self.forward(params, rule_params, x, y, save=True)
            self._bytes[key] = saved.bytes
        return self._bytes[key]

    def prepare(
        self, params: Params, rule_params: Params, x: Inputs, y: Tensor, query_x: Inputs, query_y: Tensor
    ) -> None:
        self.saved_bytes(params, rule_params, x, y)


def input_form(x: Inputs) -> tuple[Any, ...]:
    """Shapes, types and devices of a batch: what memory and compiled code depend on."""
    if isinstance(x, Tensor):
        return x.shape, x.dtype, x.device
    parts = enumerate(x) if isinstance(x, tuple) else x.items()
    return tuple((key, *input_form(part)) if isinstance(part, Tensor) else (key, part) for key, part in parts)
