"""Which cases of a long list `make test` runs; `make test-all` runs them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

KINDS_OF_RULES = ("maml", "maml++", "meta-curvature", "warp-maml")
"""Plain, per step, preconditioned, with frozen layers: what the other methods combine."""


def slow_except(names: Iterable[str], quick: Iterable[str]) -> list[Any]:
    """Return parameters for ``parametrize`` of which all but ``quick`` are marked slow."""
    chosen = set(quick)
    found = [name if name in chosen else pytest.param(name, marks=pytest.mark.slow) for name in names]
    assert chosen <= set(names), "a name that is not in the list would never be run"
    return found
