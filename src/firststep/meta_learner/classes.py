"""A meta-learner for tasks of another number of classes than its network was built for."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from firststep.network import FEWEST_CLASSES, FunctionalModule, Params
from firststep.rules import Rule


def serves(model: FunctionalModule, ways: int) -> bool:
    """Whether it takes tasks of so many classes as it is; an error if it cannot be made to."""
    if ways < FEWEST_CLASSES:
        raise ValueError(f"a task needs at least {FEWEST_CLASSES} classes, not {ways}")
    if model.head != "per-class" or ways == model.num_classes:
        return True
    if ways > model.num_classes:
        raise ValueError(
            f"the model has learned {model.num_classes} classifier rows, one for each class, so it cannot "
            f"tell {ways} classes apart; train with head shared or zero for any number of classes"
        )
    return False


def leading_blocks(rule: Rule, model: FunctionalModule, rule_params: Mapping[str, Tensor]) -> Params:
    """The rule's parameters for a model whose classifier has lost its last rows.

    Those of the first rows are the leading block of each: the shapes are what the rule would have made.
    """
    made = rule.init(model, model.params())
    return {
        name: value.detach()[tuple(slice(size) for size in made[name].shape)].clone()
        for name, value in rule_params.items()
    }
