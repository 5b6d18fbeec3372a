"""A meta-learning method: an update rule, and what it asks of the network and of the outer loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from firststep.rules.query_weights import QueryWeights, last_step_only
from firststep.rules.rule import Rule

Prepare = Callable[[nn.Module, torch.Generator | None], nn.Module]


def unchanged(module: nn.Module, generator: torch.Generator | None = None) -> nn.Module:
    """Return the network as it is: ``prepare`` of a method that takes any network."""
    return module


@dataclass(frozen=True, kw_only=True)
class Method:
    """The value that ``--method`` names.

    Examples:
        >>> method = fs.Method(rule=fs.maml(rate=0.1))
        >>> method.name, method.prepare(network, None) is network
        ('maml', True)
    """

    rule: Rule
    prepare: Prepare = unchanged
    """(backbone, generator of initial values) → the network to meta-learn."""
    query_weights: QueryWeights = last_step_only
    """(meta-update from 0, number of meta-updates, inner steps K) → the weights of the query losses after
    steps 1..K, as :class:`firststep.functional.MetaGradient` takes them; None if only the last counts."""

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name
