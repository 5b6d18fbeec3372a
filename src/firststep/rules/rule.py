"""What an update rule is: a value with ``init`` and ``update``, after optax's GradientTransformation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor

from firststep.learner import Learner, Params

Init = Callable[[Learner, Params], Params]
Update = Callable[[Params, Params, Params], Params]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How one inner step is made from the gradient of the support loss."""

    name: str
    init: Init
    """(learner, its parameters) → the rule's own parameters, meta-learned with θ; an empty dict if none."""
    update: Update
    """(gradient, moving parameters, the rule's own) → what is added to each moving parameter. Pure, and
    differentiable in all three."""
    moves: str | Iterable[str] = "all"
    """The parameter subset that the inner loop changes, as :meth:`firststep.Learner.subset` takes it."""
    first_order: bool = False
    """Treat the inner gradient as a constant in the meta-gradient."""


def no_parameters(learner: Learner, params: Params) -> Params:
    """``init`` of a rule that has no parameters of its own."""
    return {}


def scaled(rule: Rule, multiplier: float) -> Rule:
    """The same rule with every step ``multiplier`` times as long (fewer but bigger steps at inference)."""

    def update(grads: Params, params: Params, own: Params) -> Params:
        steps = rule.update(grads, params, own)
        return {name: step * multiplier for name, step in steps.items()}

    return Rule(name=rule.name, init=rule.init, update=update, moves=rule.moves, first_order=rule.first_order)


def descend(rate: float) -> Update:
    """-rate · gradient."""

    def update(grads: Params, params: Params, own: Params) -> dict[str, Tensor]:
        return {name: -rate * grad for name, grad in grads.items()}

    return update
