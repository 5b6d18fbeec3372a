"""Plain gradient descent, and its variants in which fewer parameters move or are differentiated."""

from __future__ import annotations

from functools import partial

from firststep.rules.registry import register_method
from firststep.rules.rule import Moves, Rule, build_rule, descend, require_rate

# The rate of "A Closer Look at Few-shot Classification"; the paper of the method does not state one.
DEFAULT_RATE = 0.01


@register_method("maml")
def maml(rate: float = DEFAULT_RATE, moves: Moves = "all") -> Rule:
    """Return the rule -α g on all parameters (Finn, Abbeel and Levine, 2017), or on those in ``moves``.

    Every rule takes ``moves``: the parameters that its inner loop changes. It is a subset as
    :meth:`firststep.functional.FunctionalModule.subset` takes it, or a function of the model that returns
    their names. The outer loop learns all parameters. The rule's own parameters are made for those that move.

    Examples:
        >>> fs.maml(rate=0.1).moving(model) == tuple(model.params())
        True
        >>> fs.maml(rate=0.1, moves="emb").moving(model)
        ('blocks.3.conv.weight', 'blocks.3.conv.bias')
        >>> fs.maml(rate=0.1, moves=["*.bias"]).moving(model)[:2]
        ('blocks.0.conv.bias', 'blocks.0.norm.bias')
    """
    return _descent("maml", rate, moves)


@register_method("fomaml")
def fomaml(rate: float = DEFAULT_RATE, moves: Moves = "all") -> Rule:
    """Return MAML's rule with the inner gradient constant in the meta-gradient (Finn et al., 2017).

    Examples:
        >>> fs.fomaml(rate=0.1).first_order
        True
    """
    return _descent("fomaml", rate, moves, first_order=True)


@register_method("anil")
def anil(rate: float = DEFAULT_RATE, moves: Moves = "cls") -> Rule:
    """Return the rule of ANIL, almost no inner loop: only the classifier moves (Raghu et al., 2020).

    Examples:
        >>> fs.anil(rate=0.1).moving(model)
        ('classifier.weight', 'classifier.bias')
    """
    return _descent("anil", rate, moves)


@register_method("boil")
def boil(rate: float = DEFAULT_RATE, moves: Moves = "body") -> Rule:
    """Return the rule of BOIL: all parameters but the classifier's move (Oh et al., 2021).

    Examples:
        >>> "classifier.weight" in fs.boil(rate=0.1).moving(model)
        False
    """
    return _descent("boil", rate, moves)


def _descent(name: str, rate: float, moves: Moves, first_order: bool = False) -> Rule:
    return build_rule(name, partial(descend, rate=require_rate(rate)), moves, first_order=first_order)
