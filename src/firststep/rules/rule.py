"""What an update rule is: a value with ``init`` and ``update``, after optax's GradientTransformation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from firststep.network import FunctionalModule, Params


@dataclass(frozen=True)
class SupportLoss:
    """The support loss as a function, and what the network gave for the support set before the step.

    Examples:
        >>> from firststep.rules import SupportLoss
        >>> def look(grads, params, rule_params, loss: SupportLoss):
        ...     longer = {name: value - 0.1 * grads[name] for name, value in params.items()}
        ...     print(tuple(loss.features.shape), loss(longer) < loss(params))
        ...     return {name: -0.1 * grad for name, grad in grads.items()}
        >>> own = fs.Rule(name="look", init=lambda model, params, generator=None: {}, update=look)
        >>> adapted = functional.adapt(model, own, support_x, support_y, steps=1)
        (10, 32) tensor(True)
    """

    at: Callable[[Mapping[str, Tensor]], Tensor]
    features: Tensor
    """The classifier's input, [n, d]."""
    logits: Tensor
    labels: Tensor

    def __call__(self, moved: Mapping[str, Tensor]) -> Tensor:
        """The loss with these values in place of the parameters of the same names."""
        return self.at(moved)


Update = Callable[[Params, Params, Params, SupportLoss], Params]

Moves = str | Iterable[str] | Callable[[FunctionalModule], Iterable[str]]


class Init(Protocol):
    def __call__(
        self, model: FunctionalModule, params: Params, generator: torch.Generator | None = None
    ) -> Params: ...


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How one inner step is made from the gradient of the support loss.

    A rule made of module-level functions (with ``functools.partial`` for its settings), as all of ours are,
    can be pickled.

    Examples:
        >>> def halved(grads, params, rule_params, loss):
        ...     return {name: -0.5 * grad for name, grad in grads.items()}
        >>> own = fs.Rule(name="halved", init=lambda model, params, generator=None: {}, update=halved)
        >>> fs.MetaLearner(network, own).rule.name
        'halved'
    """

    name: str
    init: Init
    """(model, its parameters, source of random values) → the rule's parameters, a flat dict that is
    meta-learned with θ; empty if there are none. Without a generator, one with seed 0."""
    update: Update
    """(gradient, moving parameters, rule_params, support loss) → what is added to each moving parameter.
    Pure, and differentiable in the first three; most rules have no use for the loss itself."""
    moves: Moves = "all"
    """What the inner loop changes: as :meth:`FunctionalModule.subset` takes them, or a function
    that names them for a model."""
    first_order: bool = False
    """Treat the inner gradient as a constant in the meta-gradient."""
    per_step: bool = False
    """Whether each of rule_params has a row for every step of the trained horizon; ``update`` sees the row of
    its step alone. Steps beyond the horizon use the last row."""

    def moving(self, model: FunctionalModule) -> tuple[str, ...]:
        """The names of the parameters that the inner loop changes."""
        if callable(self.moves):
            return tuple(self.moves(model))
        return model.subset(self.moves)

    def check_network(self, model: FunctionalModule) -> None:
        """Refuse a network for which the rule is not defined."""
        moving = self.moving(model)
        if model.head != "per-class" and not set(moving) & set(model.subset("cls")):
            raise ValueError(
                f"the method {self.name} never moves the classifier, so that with head={model.head!r} all "
                "classes would stay alike: use head='per-class'"
            )

    def at_step(self, rule_params: Mapping[str, Tensor], step: int) -> Params:
        """The rule's parameters as ``update`` sees them at a step, counted from 0; differentiable."""
        if not self.per_step:
            return dict(rule_params)
        return {name: rows[_row(rows, step)] for name, rows in rule_params.items()}

    def add_at_step(self, total: Params, step: int, part: Params) -> None:
        """The transpose of :meth:`at_step`: add a step's gradient to where its parameters came from."""
        for name, gradient in part.items():
            target = total[name][_row(total[name], step)] if self.per_step else total[name]
            target += gradient


def _row(rows: Tensor, step: int) -> int:
    return min(step, len(rows) - 1)


def no_parameters(
    model: FunctionalModule, params: Params, generator: torch.Generator | None = None
) -> Params:
    """``init`` of a rule without parameters."""
    return {}


def scaled(rule: Rule, multiplier: float) -> Rule:
    """The same rule with every step ``multiplier`` times as long (fewer but bigger steps at inference).

    It is the gradient that is scaled. Rules are homogeneous in it, except that ModGrad chooses its mask for
    the longer step; and what a rule *sets* instead of moving along the gradient, as MAML++ the batch-norm
    scale of a step, stays what was learned.

    Examples:
        >>> from firststep.rules import scaled
        >>> bigger = functional.adapt(model, scaled(rule, 3), support_x, support_y, steps=1).adapted
        >>> same = functional.adapt(model, fs.maml(rate=0.3), support_x, support_y, steps=1).adapted
        >>> torch.allclose(bigger["classifier.bias"], same["classifier.bias"])
        True
    """
    return dataclasses.replace(rule, update=partial(_scaled_update, rule.update, multiplier))


def _scaled_update(
    update: Update, multiplier: float, grads: Params, params: Params, rule_params: Params, loss: SupportLoss
) -> Params:
    longer = {name: multiplier * grad for name, grad in grads.items()}
    return update(longer, params, rule_params, loss)


def descend(grads: Params, params: Params, rule_params: Params, loss: SupportLoss, *, rate: float) -> Params:
    """``update`` of gradient descent: -rate · gradient."""
    return {name: -rate * grad for name, grad in grads.items()}


LARGEST_RATE = 1e38
"""What single precision can hold."""


def require_rate(rate: float) -> float:
    """The rate as a ``float``: tensors cannot be multiplied by whole numbers beyond 64 bits."""
    if not 0 < rate <= LARGEST_RATE:  # nor NaN
        raise ValueError(f"rate must be a positive number up to {LARGEST_RATE:g}, not {rate}")
    return float(rate)
