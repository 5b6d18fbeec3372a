"""The methods by name. A new entry is tested the moment it is registered."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from firststep.backbones import warp
from firststep.methods.method import Method
from firststep.rules import (
    Rule,
    anil,
    annealed_query_weights,
    boil,
    fomaml,
    gap,
    gauss_newton,
    maml,
    maml_plus_plus,
    meta_curvature,
    meta_sgd,
    modgrad,
    warp_maml,
)
from firststep.utils.registry import Registry

MethodBuilder = Callable[[float | None, int], Method]
"""(inner rate α, or None for the method's default; inner steps to be trained for) → the method.

Examples:
    >>> from firststep.methods import MethodBuilder
    >>> builder: MethodBuilder = lambda rate, steps: fs.Method(rule=fs.anil(rate or 0.05))
    >>> builder(None, 5).name
    'anil'
"""


def _rule(make: Callable[..., Rule], rate: float | None, **options: int) -> Rule:
    return make(**options) if rate is None else make(rate, **options)


def _plain(make: Callable[..., Rule], rate: float | None, steps: int) -> Method:
    """A method that is an update rule and nothing more."""
    return Method(rule=_rule(make, rate))


def _warp_maml(rate: float | None, steps: int) -> Method:
    return Method(rule=_rule(warp_maml, rate), prepare=warp)


def _maml_plus_plus(rate: float | None, steps: int) -> Method:
    rule = _rule(maml_plus_plus, rate, steps=steps)
    return Method(rule=rule, query_weights=annealed_query_weights)


_OURS: dict[str, MethodBuilder] = {
    "maml": partial(_plain, maml),
    "fomaml": partial(_plain, fomaml),
    "anil": partial(_plain, anil),
    "boil": partial(_plain, boil),
    "meta-sgd": partial(_plain, meta_sgd),
    "meta-curvature": partial(_plain, meta_curvature),
    "modgrad": partial(_plain, modgrad),
    "warp-maml": _warp_maml,
    "gap": partial(_plain, gap),
    "maml++": _maml_plus_plus,
    "gauss-newton": partial(_plain, gauss_newton),
}

METHODS: Registry[MethodBuilder] = Registry("method", **_OURS)
"""Add your own with ``METHODS.register("name", builder)``.

Examples:
    >>> list(fs.METHODS)
    ['maml', 'fomaml', 'anil', 'boil', 'meta-sgd', 'meta-curvature', 'modgrad', 'warp-maml', 'gap',
     'maml++', 'gauss-newton']
"""


def build_method(name: str, rate: float | None = None, steps: int = 5) -> Method:
    """The method of that name.

    Args:
        name: one of ``METHODS``.
        rate: inner rate α; default the method's own, which is 0.01, 0.1 for modgrad, and 1, the
            whole step, for gauss-newton.
        steps: inner steps that it will be trained for; maml++ has parameters for each of them.

    Examples:
        >>> method = fs.build_method("maml++", rate=0.1, steps=3)
        >>> method.rule.per_step
        True
    """
    return METHODS[name](rate, steps)
