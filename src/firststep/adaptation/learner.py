"""Learner: a network, its update rule, the values of their parameters, and the loss of the support set."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from firststep.losses import Loss, cross_entropy
from firststep.network import FunctionalModule
from firststep.rules import Rule, require_rule


class Learner:
    """The values that an inner loop starts from: one argument for all functions that adapt.

    Args:
        model: the network.
        rule: the update rule of the inner loop.
        params: the network's parameters; default the module's.
        rule_params: the rule's parameters; default as ``rule.init`` makes them.
        loss: the loss per sample of the support set.

    Examples:
        >>> learner = functional.Learner(model, fs.maml(rate=0.1))
        >>> moved, _ = functional.inner_step(learner, support_x, support_y)
        >>> again, _ = functional.inner_step(learner.at(moved), support_x, support_y)
    """

    def __init__(
        self,
        model: FunctionalModule,
        rule: Rule,
        params: Mapping[str, Tensor] | None = None,
        rule_params: Mapping[str, Tensor] | None = None,
        *,
        loss: Loss = cross_entropy,
    ) -> None:
        self.model = model
        self.rule = require_rule(rule)
        self.params = model.params() if params is None else dict(params)
        self.rule_params = rule.init(model, self.params) if rule_params is None else dict(rule_params)
        self.loss = loss

    def at(self, params: Mapping[str, Tensor], rule_params: Mapping[str, Tensor] | None = None) -> Learner:
        """Return the learner at other parameters; those of the rule stay if they are left out."""
        kept = self.rule_params if rule_params is None else rule_params
        return Learner(self.model, self.rule, params, kept, loss=self.loss)

    def detached(self) -> Learner:
        """Return the learner with the same values, detached."""
        return self.at(*({name: value.detach() for name, value in part.items()} for part in self._values()))

    def _values(self) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
        return self.params, self.rule_params
