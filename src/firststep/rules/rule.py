"""The type of an update rule: ``init`` and ``update``, after optax's ``GradientTransformation``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from firststep.losses import Loss, cross_entropy
from firststep.network import ONE_ROW, FunctionalModule, Params
from firststep.task import Targets


@dataclass(frozen=True)
class SupportLoss:
    """The support loss as a function, with the network's outputs on the support set before the step.

    Examples:
        >>> from firststep.rules import SupportLoss, no_parameters
        >>> def look(grads, params, rule_params, loss: SupportLoss):
        ...     longer = {name: value - 0.1 * grads[name] for name, value in params.items()}
        ...     print(tuple(loss.features.shape), loss(longer) < loss(params))
        ...     return {name: -0.1 * grad for name, grad in grads.items()}
        >>> own = fs.Rule(name="look", init=no_parameters, update=look, stateless=True)
        >>> adapted = functional.adapt(functional.Learner(model, own), support_x, support_y, steps=1)
        (10, 32) tensor(True)
    """

    at: Callable[[Mapping[str, Tensor]], Tensor]
    features: Tensor | None
    """The last linear layer's input, [n, d]; None if the network does not end in one."""
    logits: Any
    """The network's output."""
    labels: Targets
    """The targets."""
    loss: Loss = cross_entropy
    """The loss per sample."""

    def __call__(self, moved: Mapping[str, Tensor]) -> Tensor:
        """Return the loss with these values in place of the parameters of the same names."""
        return self.at(moved)


Update = Callable[..., Any]

InnerLoss = Callable[[Tensor, SupportLoss, Params, Params], Tensor]

InitState = Callable[[Params], Params]

Moves = str | Iterable[str] | Callable[[FunctionalModule], Iterable[str]]


class Init(Protocol):
    def __call__(
        self, model: FunctionalModule, params: Params, generator: torch.Generator | None = None
    ) -> Params: ...


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule turns the gradient of the support loss into one inner step.

    A rule can be pickled if it is made of module-level functions, with ``functools.partial`` for its
    settings. All rules of firststep are. :func:`firststep.stateless` and :func:`firststep.chain` make rules
    from functions and from other rules.

    Examples:
        >>> def halved(grads, params, rule_params, loss):
        ...     return {name: -0.5 * grad for name, grad in grads.items()}
        >>> from firststep.rules import no_parameters
        >>> own = fs.Rule(name="halved", init=no_parameters, update=halved)
        >>> fs.MetaLearner(network, own).rule.name
        'halved'
    """

    name: str
    init: Init
    """(model, its parameters, generator) → the rule's parameters: a flat dict, meta-learned with θ and empty
    for a rule without parameters. The default generator has seed 0."""
    update: Update
    """(gradient, moving parameters, rule_params, support loss) → what is added to each moving parameter.
    The function must be pure, because a step is computed more than once, and differentiable in its first
    three arguments. Most rules do not use the loss. A rule with state takes the state as a fifth argument and
    returns (what is added, the new state)."""
    init_state: InitState | None = None
    """moving parameters → the state before the first step, such as momentum: a flat dict of tensors. None for
    a rule without state. The meta-gradient goes through the state of all steps."""
    moves: Moves = "all"
    """The parameters that the inner loop changes: a subset as :meth:`FunctionalModule.subset` takes it, or a
    function of the model that returns their names."""
    first_order: bool = False
    """Treat the inner gradient as a constant in the meta-gradient."""
    stateless: bool = field(default=False, compare=False)
    """Whether ``update`` is known to be pure: all state is in its arguments. Otherwise the first use of the
    rule computes a step twice, and refuses a rule that keeps state between calls or draws random numbers."""
    per_step: bool | tuple[str, ...] = False
    """Whether rule_params have one row per trained inner step: all, none, or those whose names begin with one
    of these. ``update`` sees only the row of its step. Steps beyond the trained number use the last row."""
    inner_loss: InnerLoss | None = None
    """(mean support loss, support loss, moving parameters, rule_params) → the loss whose gradient the step
    takes; default the mean support loss itself."""
    rebuild: Callable[[Moves], Rule] | None = field(default=None, compare=False, repr=False)
    """Makes the same rule for other parameters that move; None for a rule that cannot be made so."""

    def moving(self, model: FunctionalModule) -> tuple[str, ...]:
        """Return the names of the parameters that the inner loop changes."""
        return names_of(self.moves, model)

    def moving_only(self, moves: Moves) -> Rule:
        """Return the rule for other parameters that move.

        Examples:
            >>> fs.meta_sgd(rate=0.1).moving_only(["*.bias"]).moving(model)[:2]
            ('blocks.0.conv.bias', 'blocks.0.norm.bias')
        """
        if self.rebuild is not None:
            return self.rebuild(moves)
        if self.init is no_parameters:
            return replace(self, moves=moves)
        raise ValueError(f"the rule {self.name!r} makes its own parameters: give it `moves` where it is made")

    def initial_state(self, model: FunctionalModule, params: Mapping[str, Tensor]) -> Params:
        """Return the state before the first step; empty for a rule without state."""
        if self.init_state is None:
            return {}
        return self.init_state({name: params[name] for name in self.moving(model)})

    def step(
        self, grads: Params, params: Params, rule_params: Params, loss: SupportLoss, state: Params
    ) -> tuple[Params, Params]:
        """Return what is added to each moving parameter, and the new state."""
        if self.init_state is None:
            return self.update(grads, params, rule_params, loss), {}
        steps, new_state = self.update(grads, params, rule_params, loss, state)
        # In one order at every step: compiled code takes tensors by their place.
        return steps, {name: new_state[name] for name in state}

    def remember_stateless(self) -> None:
        """Record that a check found ``update`` pure. No other field ever changes."""
        object.__setattr__(self, "stateless", True)

    def check_network(self, model: FunctionalModule) -> None:
        """Refuse a network for which the rule is not defined."""
        moving = self.moving(model)
        if model.head in ONE_ROW and not set(moving) & set(model.subset("cls")):
            raise ValueError(
                f"the method {self.name} never moves the classifier, so with head={model.head!r} all classes "
                "would stay alike: use head='per-class'"
            )

    def at_step(self, rule_params: Mapping[str, Tensor], step: int) -> Params:
        """Return the rule's parameters as ``update`` sees them at a step (from 0); differentiable."""
        return {
            name: value[_row(value, step)] if self._has_rows(name) else value
            for name, value in rule_params.items()
        }

    def add_at_step(self, total: Params, step: int, part: Params) -> None:
        """Add a step's gradient to the rows that its parameters came from: :meth:`at_step` transposed."""
        for name, gradient in part.items():
            target = total[name][_row(total[name], step)] if self._has_rows(name) else total[name]
            target += gradient

    def _has_rows(self, name: str) -> bool:
        return name.startswith(self.per_step) if isinstance(self.per_step, tuple) else self.per_step


def names_of(moves: Moves, model: FunctionalModule) -> tuple[str, ...]:
    """Return the names of the parameters that ``moves`` selects."""
    return tuple(moves(model)) if callable(moves) else model.subset(moves)


def require_rule(rule: object) -> Rule:
    """Return the rule; raise a TypeError that shows how to make one for anything else."""
    if isinstance(rule, Rule):
        return rule
    remedy = "pass fs.maml(rate=0.05), or another rule of firststep.rules"
    if isinstance(rule, int | float) and not isinstance(rule, bool):
        remedy = f"the inner rate is an argument of the rule: fs.maml(rate={rule})"
    elif isinstance(rule, torch.optim.Optimizer) or (
        isinstance(rule, type) and issubclass(rule, torch.optim.Optimizer)
    ):
        remedy = (
            "an optimiser trains the outer loop: torch.optim.Adam(meta.parameters()). "
            "The inner loop takes a rule such as fs.maml(rate=0.05)"
        )
    elif isinstance(getattr(rule, "rule", None), Rule):
        remedy = "pass its attribute .rule"
    elif callable(rule) and getattr(rule, "__module__", "").startswith(__package__):
        remedy = f"call it: fs.{getattr(rule, '__name__', 'maml')}()"
    kind = rule if isinstance(rule, type) else type(rule)
    shown = repr(rule)[:80] if isinstance(rule, str | int | float) else kind.__name__
    raise TypeError(f"rule must be a firststep Rule, not {shown}: {remedy}")


def build_rule(
    name: str,
    update: Update,
    moves: Moves,
    *,
    init: Init | None = None,
    allowed: Callable[[FunctionalModule, tuple[str, ...]], tuple[str, ...]] | None = None,
    **options: Any,
) -> Rule:
    """Build a rule whose caller chooses the parameters that move.

    Args:
        name: the rule's name.
        update: the rule's step: a pure module-level function, or a ``partial`` of one.
        moves: the parameters that the caller selected.
        init: makes the rule's parameters from the parameters that move; default no parameters.
        allowed: (model, names) → the names that the rule can move; raises if it is not defined for them.
        options: further fields of the rule.
    """
    if not isinstance(moves, str) and not callable(moves):
        moves = tuple(moves)  # an iterator could be read only once
    if allowed is not None:
        moves = partial(_allowed_names, allowed, moves)
    chosen = no_parameters if init is None else partial(_init_moving, init, moves)
    rebuild = partial(_build_moving, name, update, init, allowed, options)
    return Rule(
        name=name,
        init=chosen,
        update=update,
        moves=moves,
        rebuild=rebuild,
        **{"stateless": True, **options},
    )


def _build_moving(
    name: str,
    update: Update,
    init: Init | None,
    allowed: Callable[[FunctionalModule, tuple[str, ...]], tuple[str, ...]] | None,
    options: dict[str, Any],
    moves: Moves,
) -> Rule:
    return build_rule(name, update, moves, init=init, allowed=allowed, **options)


def _allowed_names(
    allowed: Callable[[FunctionalModule, tuple[str, ...]], tuple[str, ...]],
    moves: Moves,
    model: FunctionalModule,
) -> tuple[str, ...]:
    names = allowed(model, names_of(moves, model))
    if not names:
        raise ValueError("moves leaves no parameter that the rule may move")
    return names


def _init_moving(
    init: Init,
    moves: Moves,
    model: FunctionalModule,
    params: Params,
    generator: torch.Generator | None = None,
) -> Params:
    return init(model, {name: params[name] for name in names_of(moves, model)}, generator)


def _row(rows: Tensor, step: int) -> int:
    return min(step, len(rows) - 1)


def no_parameters(
    model: FunctionalModule, params: Params, generator: torch.Generator | None = None
) -> Params:
    """Return no parameters: ``init`` of a rule that has none.

    Examples:
        >>> from firststep.rules import no_parameters
        >>> no_parameters(model, model.params())
        {}
    """
    return {}


def descend(grads: Params, params: Params, rule_params: Params, loss: SupportLoss, *, rate: float) -> Params:
    """Return -rate · gradient: ``update`` of gradient descent.

    Examples:
        >>> from functools import partial
        >>> from firststep.rules import descend, no_parameters
        >>> own = fs.Rule(name="own", init=no_parameters, update=partial(descend, rate=0.1))
        >>> same, maml = (
        ...     functional.adapt(functional.Learner(model, each), support_x, support_y, steps=1).adapted
        ...     for each in (own, fs.maml(rate=0.1))
        ... )
        >>> torch.equal(same["classifier.bias"], maml["classifier.bias"])
        True
    """
    return {name: -rate * grad for name, grad in grads.items()}


LARGEST_RATE = 1e38
"""The largest rate: single precision overflows just above it."""


def require_rate(rate: float) -> float:
    """Return the inner rate as a ``float``; refuse one that is not positive and finite.

    Examples:
        >>> from firststep.rules import require_rate
        >>> require_rate(1)
        1.0
    """
    return require_positive("rate", rate)


def require_positive(name: str, value: float) -> float:
    """Return the value as a ``float``, because torch cannot multiply by integers of more than 64 bits."""
    if not 0 < value <= LARGEST_RATE:  # also refuses NaN
        raise ValueError(f"{name} must be a positive number up to {LARGEST_RATE:g}, not {value}")
    return float(value)


def require_decay(name: str, value: float) -> float:
    """Return the decay of a running mean as a ``float``; refuse one that is not in [0, 1)."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, not {value}")
    return float(value)


def stepping(rate: float | None) -> float:
    """Return the factor of a direction: -α, or 1 without a rate, where another rule makes the step."""
    return 1.0 if rate is None else -require_rate(rate)
