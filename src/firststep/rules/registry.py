"""The update rules by name. A new entry is tested the moment it is registered."""

from __future__ import annotations

from collections.abc import Callable

from firststep.rules.gradient_descent import DEFAULT_RATE, anil, boil, fomaml, maml
from firststep.rules.rule import Rule

RULES: dict[str, Callable[..., Rule]] = {"maml": maml, "fomaml": fomaml, "anil": anil, "boil": boil}


def build_rule(name: str, rate: float = DEFAULT_RATE) -> Rule:
    """The update rule of that name with inner rate α."""
    if name not in RULES:
        raise ValueError(f"unknown method {name!r}; there are {', '.join(RULES)}")
    return RULES[name](rate)
