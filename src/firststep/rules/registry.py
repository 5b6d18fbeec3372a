"""The methods by name. A rule registers itself at its definition with :func:`register_method`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from firststep.rules.method import Method, Prepare, unchanged
from firststep.rules.query_weights import QueryWeights, last_step_only
from firststep.rules.rule import Rule
from firststep.utils.registry import Registry

MethodBuilder = Callable[[float | None, int], Method]
"""A function (inner rate α, or None for the method's default; number of inner steps) → method.

Examples:
    >>> from firststep.methods import MethodBuilder
    >>> builder: MethodBuilder = lambda rate, steps: fs.Method(rule=fs.anil(rate or 0.05))
    >>> builder(None, 5).name
    'anil'
"""

METHODS: Registry[MethodBuilder] = Registry("method")
"""The methods by name; add your own with ``METHODS.register("name", builder)``.

Examples:
    >>> list(fs.METHODS)
    ['maml', 'fomaml', 'anil', 'boil', 'meta-sgd', 'meta-curvature', 'modgrad', 'warp-maml', 'gap',
     'maml++', 'gauss-newton', 'momentum', 'adam', 'rmsprop', 'alfa', 'metal']
"""

MakeRule = TypeVar("MakeRule", bound=Callable[..., Rule])


def register_method(
    name: str, *, prepare: Prepare = unchanged, query_weights: QueryWeights = last_step_only
) -> Callable[[MakeRule], MakeRule]:
    """Register a function that makes a rule as the method ``name``.

    The commands then know the method, show it in their help, and every test over ``METHODS`` runs it.

    Args:
        name: the name for ``--method``.
        prepare: changes the network that the method learns with; default unchanged.
        query_weights: weights of the query losses after each inner step; default only the last step.

    Returns:
        A decorator for a function with an argument ``rate`` that has a default value. If the function also
        has an argument ``steps``, it gets the number of inner steps.

    Examples:
        >>> from firststep.rules import register_method
        >>> @register_method("clipped-maml")
        ... def clipped_maml(rate=0.01):
        ...     return fs.chain(fs.clip_by_norm(1.0), fs.maml(rate))
        >>> fs.build_method("clipped-maml").rule.name
        'clip-by-norm | maml'
        >>> fs.METHODS.unregister("clipped-maml")
    """

    def register(make: MakeRule) -> MakeRule:
        takes_steps = "steps" in inspect.signature(make).parameters
        METHODS.register(name, partial(_build, make, takes_steps, prepare, query_weights))
        return make

    return register


def _build(
    make: Callable[..., Rule],
    takes_steps: bool,
    prepare: Prepare,
    query_weights: QueryWeights,
    rate: float | None,
    steps: int,
) -> Method:
    options: dict[str, Any] = {} if rate is None else {"rate": rate}
    if takes_steps:
        options["steps"] = steps
    return Method(rule=make(**options), prepare=prepare, query_weights=query_weights)


def build_method(name: str, rate: float | None = None, steps: int = 5) -> Method:
    """Build the method of that name.

    Args:
        name: one of ``METHODS``.
        rate: inner rate α; default the method's own: 0.1 for modgrad, 1 (the whole step) for gauss-newton,
            0.01 for all others.
        steps: number of inner steps to train for; maml++ has parameters per step.

    Examples:
        >>> method = fs.build_method("maml++", rate=0.1, steps=3)
        >>> method.rule.per_step
        True
    """
    return METHODS[name](rate, steps)
