"""One inner step: parameters and a support set in, new parameters and what was seen out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.adaptation.gram import support_gram
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule


class Seen(NamedTuple):
    """What one inner step saw at the parameters before it."""

    loss: Tensor
    """Mean cross-entropy of the support set."""
    features: Tensor
    logits: Tensor
    gram: Tensor | None
    """The Gram matrix of the asked-for subset, or None."""


def inner_step(
    model: FunctionalModule,
    rule: Rule,
    params: Mapping[str, Tensor],
    own: Mapping[str, Tensor],
    images: Tensor,
    labels: Tensor,
    *,
    subset: str | Iterable[str] | None = None,
    create_graph: bool = False,
    gram_in_graph: bool = False,
) -> tuple[Params, Seen]:
    """θ ↦ θ + update(∇L(θ)), and what was seen at θ.

    Args:
        model: the network.
        rule: the update rule.
        params: the network's parameters θ.
        own: the rule's own parameters for this step: ``rule.at_step(own, k)``.
        images: the support set.
        labels: its labels.
        subset: also give the Gram matrix for this parameter subset.
        create_graph: keep the result differentiable in ``params`` and ``own``. Otherwise everything
            returned is detached and nothing of the computation stays in memory.
        gram_in_graph: of the Gram matrix too, as one graph with the step's: see ``in_graph`` of
            :func:`support_gram`.
    """
    if not create_graph:
        params = {name: value.detach() for name, value in params.items()}
        own = {name: value.detach() for name, value in own.items()}
    moving = rule.moving(model)
    with torch.enable_grad():
        theta = {
            name: value.detach().requires_grad_() if name in moving and not value.requires_grad else value
            for name, value in params.items()
        }
        output = model(theta, images)
        loss = F.cross_entropy(output.logits, labels)
        grads = torch.autograd.grad(
            loss,
            [theta[name] for name in moving],
            create_graph=create_graph and not rule.first_order,
            # The graph goes on to serve the Gram, the query loss of a caller, ... only when asked to.
            retain_graph=create_graph,
        )
    with torch.set_grad_enabled(create_graph):
        steps = rule.update(
            dict(zip(moving, grads, strict=True)),
            {name: theta[name] for name in moving},
            dict(own),
            lambda moved: F.cross_entropy(model({**theta, **moved}, images).logits, labels),
        )
        updated = {name: value + steps[name] if name in steps else value for name, value in theta.items()}
        gram = None
        if subset is not None:
            gram = support_gram(
                model,
                images,
                labels,
                params=theta,
                subset=subset,
                output=output,
                check_finite=False,
                in_graph=gram_in_graph,
            )
    seen = Seen(loss, output.features, output.logits, gram)
    if not create_graph:
        updated = {name: value.detach() for name, value in updated.items()}
        seen = Seen(loss.detach(), output.features.detach(), output.logits.detach(), gram)
    return updated, seen
