"""One inner step that can be pulled back, in the two forms that the recursion uses.

``forward`` gives the new parameters, what was seen, and what a later ``pull_back`` needs (``kept``), which
may be dropped and computed again by another ``forward``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.adaptation import inner_step
from firststep.conditioning.saved_memory import counting_saved
from firststep.metagradient.objective import Conditioning
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule


class Stepped(NamedTuple):
    """One step forward; detached tensors."""

    params: Params
    loss: Tensor
    features: Tensor
    logits: Tensor


class Pulled(NamedTuple):
    """One step's pull-back: cotangents of its inputs, and the conditioning it met."""

    params: Params
    own: Params
    stage_loss: Tensor | None
    gram: Tensor | None


class Queried(NamedTuple):
    loss: Tensor
    accuracy: Tensor
    gradient: Params


class Steps(Protocol):
    """The three computations that a meta-gradient is made of."""

    def forward(
        self, params: Params, own: Params, images: Tensor, labels: Tensor, keep: bool
    ) -> tuple[Stepped, Any]: ...

    def pull_back(self, kept: Any, cotangents: Params, weight: Tensor) -> Pulled: ...

    def query(self, params: Params, images: Tensor, labels: Tensor) -> Queried: ...

    def kept_bytes(self, params: Params, own: Params, images: Tensor, labels: Tensor) -> int:
        """What keeping one step of these shapes takes."""
        ...


class Graph(NamedTuple):
    """A step with its autograd graph."""

    params: Params
    own: Params
    new: Params
    stage_loss: Tensor | None
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
        self.gram_in_graph = gram_in_graph  # for a recording: where memory is not this graph's
        self._bytes: dict[Any, int] = {}

    def forward(
        self, params: Params, own: Params, images: Tensor, labels: Tensor, keep: bool
    ) -> tuple[Stepped, Graph | None]:
        if not keep:
            new, seen = inner_step(self.model, self.rule, params, own, images, labels)
            return Stepped(new, seen.loss, seen.features, seen.logits), None
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        mine = {name: value.detach().requires_grad_() for name, value in own.items()}
        subset = self.conditioning.subset if self.conditioning else None
        with torch.enable_grad():
            new, seen = inner_step(
                self.model,
                self.rule,
                theta,
                mine,
                images,
                labels,
                subset=subset,
                create_graph=True,
                gram_in_graph=self.gram_in_graph,
            )
            stage_loss = None
            if self.conditioning is not None and seen.gram is not None:
                stage_loss = self.conditioning.stage_loss(seen.gram)
        stepped = Stepped(
            {name: value.detach() for name, value in new.items()},
            seen.loss.detach(),
            seen.features.detach(),
            seen.logits.detach(),
        )
        return stepped, Graph(theta, mine, new, stage_loss, seen.gram)

    def pull_back(self, kept: Graph, cotangents: Params, weight: Tensor) -> Pulled:
        outputs = [kept.new[name] for name in cotangents]
        seeds = list(cotangents.values())
        if kept.stage_loss is not None and kept.stage_loss.requires_grad:
            outputs.append(kept.stage_loss)
            seeds.append(weight)
        leaves = [*kept.params.values(), *kept.own.values()]
        grads = torch.autograd.grad(outputs, leaves, seeds, materialize_grads=True)
        return Pulled(
            params=dict(zip(kept.params, grads, strict=False)),
            own=dict(zip(kept.own, grads[len(kept.params) :], strict=True)),
            stage_loss=None if kept.stage_loss is None else kept.stage_loss.detach(),
            gram=None if kept.gram is None else kept.gram.detach(),
        )

    def query(self, params: Params, images: Tensor, labels: Tensor) -> Queried:
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        with torch.enable_grad():
            logits = self.model(theta, images).logits
            loss = F.cross_entropy(logits, labels)
            grads = torch.autograd.grad(loss, list(theta.values()), materialize_grads=True)
        accuracy = (logits.detach().argmax(-1) == labels).double().mean()
        return Queried(loss.detach(), accuracy, dict(zip(theta, grads, strict=True)))

    def kept_bytes(self, params: Params, own: Params, images: Tensor, labels: Tensor) -> int:
        key = (images.shape, images.dtype, images.device)
        if key not in self._bytes:
            self._bytes[key] = self._measure(params, own, images, labels)
        return self._bytes[key]

    def _measure(self, params: Params, own: Params, images: Tensor, labels: Tensor) -> int:
        with counting_saved() as saved:
            self.forward(params, own, images, labels, keep=True)
        return saved.bytes
