"""Adjust a meta-learner to tasks with another number of classes than its network has."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from firststep.network import FEWEST_CLASSES, FunctionalModule, Params
from firststep.rules import Rule


def serves(model: FunctionalModule, ways: int) -> bool:
    """Return whether the model takes tasks of ``ways`` classes as it is; raise if it cannot be adjusted."""
    if ways < FEWEST_CLASSES:
        raise ValueError(f"a task needs at least {FEWEST_CLASSES} classes, not {ways}")
    if model.head != "per-class" or ways == model.num_classes:
        return True
    if ways > model.num_classes:
        raise ValueError(
            f"the model has learned {model.num_classes} classifier rows, one for each class, so it cannot "
            f"tell {ways} classes apart; train with head shared, zero or prototypes for any number"
        )
    return False


def leading_blocks(rule: Rule, model: FunctionalModule, rule_params: Mapping[str, Tensor]) -> Params:
    """Return the rule's parameters for a model whose classifier keeps only its first rows.

    They are the leading block of each parameter, in the shape that the rule would have made.
    """
    made = rule.init(model, model.params())
    return {
        name: value.detach()[tuple(slice(size) for size in made[name].shape)].clone()
        for name, value in rule_params.items()
    }
