"""The methods by name. A new entry is tested the moment it is registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firststep.backbones.warp import warp
from firststep.rules.gap import gap
from firststep.rules.gradient_descent import anil, boil, fomaml, maml
from firststep.rules.maml_plus_plus import annealed_query_weights, maml_plus_plus
from firststep.rules.meta_curvature import meta_curvature
from firststep.rules.meta_sgd import meta_sgd
from firststep.rules.method import Method
from firststep.rules.modgrad import modgrad
from firststep.rules.rule import Rule
from firststep.rules.warp_maml import warp_maml

Build = Callable[[dict[str, float], int], Method]


def _of(rule: Callable[..., Rule], **extras: Any) -> Build:
    """A method whose rule is the same at every step."""
    return lambda rate, steps: Method(rule=rule(**rate), **extras)


METHODS: dict[str, Build] = {
    "maml": _of(maml),
    "fomaml": _of(fomaml),
    "anil": _of(anil),
    "boil": _of(boil),
    "meta-sgd": _of(meta_sgd),
    "meta-curvature": _of(meta_curvature),
    "modgrad": _of(modgrad),
    "warp-maml": _of(warp_maml, prepare=warp),
    "gap": _of(gap),
    "maml++": lambda rate, steps: Method(
        rule=maml_plus_plus(**rate, steps=steps), query_weights=annealed_query_weights
    ),
}


def build_method(name: str, rate: float | None = None, steps: int = 5) -> Method:
    """The method of that name.

    Args:
        name: one of ``METHODS``.
        rate: inner rate α; default the method's own, which is 0.01, and 0.1 for modgrad.
        steps: inner steps that it will be trained for; maml++ has parameters for each of them.
    """
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]({} if rate is None else {"rate": rate}, steps)
