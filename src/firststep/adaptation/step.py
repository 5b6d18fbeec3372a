"""One inner step: parameters and a support set in, new parameters and auxiliary results out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.adaptation.gram import gram_of
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule, SupportLoss
from firststep.task import Inputs, as_samples


class Aux(NamedTuple):
    """The auxiliary results of an inner step, at the parameters before it.

    Examples:
        >>> _, aux = functional.inner_step(model, rule, params, {}, support_x, support_y, subset="cls")
        >>> aux.features.shape, aux.logits.shape, aux.gram.shape
        (torch.Size([10, 32]), torch.Size([10, 5]), torch.Size([10, 10]))
    """

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
    rule_params: Mapping[str, Tensor],
    x: Inputs,
    y: Tensor,
    *,
    subset: str | Iterable[str] | None = None,
    create_graph: bool = False,
    gram_in_graph: bool = False,
) -> tuple[Params, Aux]:
    """θ ↦ θ + update(∇L(θ)), and the auxiliary results at θ.

    Args:
        model: the network.
        rule: the update rule.
        params: the network's parameters θ.
        rule_params: the rule's parameters for this step: ``rule.at_step(rule_params, k)``.
        x: the support set.
        y: its labels.
        subset: also give the Gram matrix for this parameter subset.
        create_graph: keep the result differentiable in ``params`` and ``rule_params``. Otherwise everything
            returned is detached and nothing of the computation stays in memory.
        gram_in_graph: of the Gram matrix too, as one graph with the step's: see ``in_graph`` of
            :func:`gram_of`.

    Examples:
        >>> moved, aux = functional.inner_step(model, rule, params, {}, support_x, support_y)
        >>> after = torch.nn.functional.cross_entropy(model(moved, support_x).logits, support_y)
        >>> bool(after < aux.loss)
        True
    """
    y = as_samples(x, y)
    if type(y) is Tensor:  # a traced tensor has no values
        model.check_labels(params, y)
    if not create_graph:
        params = {name: value.detach() for name, value in params.items()}
        rule_params = {name: value.detach() for name, value in rule_params.items()}
    moving = rule.moving(model)
    with torch.enable_grad():
        theta = {
            name: value.detach().requires_grad_() if name in moving and not value.requires_grad else value
            for name, value in params.items()
        }
        output = model(theta, x)
        loss = F.cross_entropy(output.logits, y)
        grads = torch.autograd.grad(
            loss,
            [theta[name] for name in moving],
            create_graph=create_graph and not rule.first_order,
            # The graph goes on to serve the Gram, the query loss of a caller, ... only when asked to.
            retain_graph=create_graph,
            materialize_grads=True,  # of a parameter that the network does not use: 0
        )
    with torch.set_grad_enabled(create_graph):
        support_loss = SupportLoss(
            lambda moved: F.cross_entropy(model({**theta, **moved}, x).logits, y),
            output.features,
            output.logits,
            y,
        )
        try:
            steps = rule.update(
                dict(zip(moving, grads, strict=True)),
                {name: theta[name] for name in moving},
                dict(rule_params),
                support_loss,
            )
        except KeyError as error:
            raise ValueError(
                f"the rule {rule.name!r} finds no {error} in its arguments: rule_params were made for other "
                "parameters than those that move. To move 'emb' or 'ebn', name the layer: embedding=..."
            ) from error
        updated = {name: value + steps[name] if name in steps else value for name, value in theta.items()}
        gram = None
        if subset is not None:
            gram = gram_of(model, x, y, theta, subset, output=output, in_graph=gram_in_graph)
    aux = Aux(loss, output.features, output.logits, gram)
    if not create_graph:
        updated = {name: value.detach() for name, value in updated.items()}
        aux = Aux(loss.detach(), output.features.detach(), output.logits.detach(), gram)
    return updated, aux
