"""One inner step: parameters and a support set in, new parameters and auxiliary results out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from firststep.adaptation.gram import gram_of
from firststep.adaptation.learner import Learner
from firststep.losses import Residuals
from firststep.network import Params
from firststep.rules import SupportLoss
from firststep.task import Inputs, Targets, as_samples, map_inputs


class Aux(NamedTuple):
    """The auxiliary results of an inner step, at the parameters before it.

    Examples:
        >>> _, aux = functional.inner_step(learner, support_x, support_y, subset="cls")
        >>> aux.features.shape, aux.logits.shape, aux.gram.shape
        (torch.Size([10, 32]), torch.Size([10, 5]), torch.Size([10, 10]))
    """

    loss: Tensor
    """Mean loss of the support set."""
    features: Tensor | None
    """The last linear layer's input; None if the network does not end in one."""
    logits: Any
    """The network's output."""
    gram: Tensor | None
    """Gram matrix of the requested subset, or None."""
    state: Params
    """The rule's state *after* the step; empty for a rule without state."""


def inner_step(
    learner: Learner,
    x: Inputs,
    y: Targets,
    *,
    state: Mapping[str, Tensor] | None = None,
    subset: str | Iterable[str] | None = None,
    residuals: Residuals | None = None,
    create_graph: bool = False,
    gram_in_graph: bool = False,
) -> tuple[Params, Aux]:
    """Return θ + update(∇L(θ)), and the auxiliary results at θ.

    A rule with state, such as momentum, receives ``state`` and returns the new one in ``aux.state``.

    Args:
        learner: network, rule and loss with the parameters θ, and with the rule's parameters for this step:
            ``rule.at_step(rule_params, k)``.
        x: inputs of the support set.
        y: its targets.
        state: the rule's state; default its initial state.
        subset: also return the Gram matrix for this parameter subset.
        residuals: kind of its residuals; default all.
        create_graph: keep the result differentiable in the learner's parameters and ``state``. Otherwise
            all results are detached and nothing of the computation stays in memory.
        gram_in_graph: build step and Gram matrix as one graph: see ``in_graph`` of :func:`gram_of`.

    Examples:
        >>> moved, aux = functional.inner_step(learner, support_x, support_y)
        >>> after = torch.nn.functional.cross_entropy(model(moved, support_x).logits, support_y)
        >>> bool(after < aux.loss)
        True
    """
    model, rule, loss = learner.model, learner.rule, learner.loss
    y = as_samples(x, y, as_target=loss.as_target)
    state = rule.initial_state(model, learner.params) if state is None else state
    if not create_graph:
        learner = learner.detached()
        state = {name: value.detach() for name, value in state.items()}
    params = learner.params
    model.check_labels(params, *(part for part in loss.labels(y) if type(part) is Tensor))  # not traced ones
    moving = rule.moving(model)
    with torch.enable_grad():
        theta = {
            name: value.detach().requires_grad_() if name in moving and not value.requires_grad else value
            for name, value in params.items()
        }
        output = model(theta, x)
        mean_loss = loss.mean(output.logits, y)
        support_loss = SupportLoss(
            lambda moved: loss.mean(model({**theta, **moved}, x).logits, y),
            output.features,
            output.logits,
            y,
            loss,
        )
        descended = mean_loss
        if rule.inner_loss is not None:
            moved = {name: theta[name] for name in moving}
            descended = rule.inner_loss(mean_loss, support_loss, moved, learner.rule_params)
        grads = torch.autograd.grad(
            descended,
            [theta[name] for name in moving],
            create_graph=create_graph and not rule.first_order,
            # Keep the graph only if the Gram matrix or a caller's query loss still needs it.
            retain_graph=create_graph,
            materialize_grads=True,  # 0 for parameters that the network does not use
        )
    with torch.set_grad_enabled(create_graph):
        try:
            steps, new_state = rule.step(
                dict(zip(moving, grads, strict=True)),
                {name: theta[name] for name in moving},
                learner.rule_params,
                support_loss,
                dict(state),
            )
        except KeyError as error:
            raise ValueError(
                f"the rule {rule.name!r} finds no {error} in its arguments: rule_params were made for other "
                "parameters than those that move. To move 'emb' or 'ebn', name the layer: embedding=..."
            ) from error
        updated = {name: value + steps[name] if name in steps else value for name, value in theta.items()}
        gram = None
        if subset is not None:
            gram = gram_of(
                model,
                x,
                y,
                theta,
                subset,
                loss=loss,
                residuals=residuals,
                output=output,
                in_graph=gram_in_graph,
            )
    aux = Aux(mean_loss, output.features, output.logits, gram, new_state)
    if not create_graph:
        updated = {name: value.detach() for name, value in updated.items()}
        aux = detached(aux)._replace(gram=gram)
    return updated, aux


def detached(aux: Aux) -> Aux:
    """Return the same results detached, without the Gram matrix."""
    return Aux(
        aux.loss.detach(),
        None if aux.features is None else aux.features.detach(),
        map_inputs(Tensor.detach, aux.logits),
        None,
        {name: value.detach() for name, value in aux.state.items()},
    )
