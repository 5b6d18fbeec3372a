"""How many parameters a method learns."""

from __future__ import annotations

from typing import NamedTuple

from torch import nn

from firststep.network import FunctionalModule
from firststep.rules.method import Method


class ParameterCounts(NamedTuple):
    backbone: int
    """Of the network as it is without the method."""
    added: int
    """By the method: layers in the network, and the rule's own parameters."""

    @property
    def total(self) -> int:
        return self.backbone + self.added


def count_parameters(method: Method, module: nn.Module) -> ParameterCounts:
    """What ``method`` learns with this network, which must not be prepared for it yet.

    The conditioning loss adds nothing to any of it.
    """
    backbone = _count(FunctionalModule(module))
    model = FunctionalModule(method.prepare(module, None))
    own = method.rule.init(model, model.params())
    total = _count(model) + sum(value.numel() for value in own.values())
    return ParameterCounts(backbone, total - backbone)


def _count(model: FunctionalModule) -> int:
    return sum(value.numel() for value in model.params().values())
