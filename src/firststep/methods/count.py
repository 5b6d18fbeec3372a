"""The number of parameters that a method learns."""

from __future__ import annotations

from typing import NamedTuple

from torch import nn

from firststep.network import FunctionalModule
from firststep.rules import Method


class ParameterCounts(NamedTuple):
    """The number of parameters of a network, and the number that a method adds.

    Examples:
        >>> from firststep.methods import ParameterCounts
        >>> ParameterCounts(backbone=121_093, added=219).total
        121312
    """

    backbone: int
    """Number of parameters of the network with its head, without the method."""
    added: int
    """Number that the method adds: layers in the network, and the rule's parameters."""

    @property
    def total(self) -> int:
        return self.backbone + self.added


def count_parameters(method: Method, module: nn.Module, head: str = "per-class") -> ParameterCounts:
    """Count the parameters that ``method`` learns with this network. The network is changed by the count.

    The network must not be prepared for the method yet. The conditioning loss adds no parameters.

    Examples:
        >>> from firststep.methods import count_parameters
        >>> count_parameters(fs.build_method("gap"), fs.build_backbone("conv4", filters=64))
        ParameterCounts(backbone=121093, added=219)
    """
    backbone = _count(FunctionalModule(module, head=head))
    model = FunctionalModule(method.prepare(module, None), head=head)
    method.rule.check_network(model)
    rule_params = method.rule.init(model, model.params())
    total = _count(model) + sum(value.numel() for value in rule_params.values())
    return ParameterCounts(backbone, total - backbone)


def _count(model: FunctionalModule) -> int:
    return sum(value.numel() for value in model.params().values() if value.requires_grad)
