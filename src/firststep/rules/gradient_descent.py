"""Plain gradient descent, and its variants in which fewer things move or are differentiated."""

from __future__ import annotations

from functools import partial

from firststep.rules.rule import Rule, descend, no_parameters, require_rate

# The inner rate of "A Closer Look at Few-shot Classification"; the paper of the method is silent on it.
DEFAULT_RATE = 0.01


def maml(rate: float = DEFAULT_RATE) -> Rule:
    """-α g on all parameters (Finn, Abbeel and Levine, 2017).

    Examples:
        >>> fs.maml(rate=0.1).moving(model) == tuple(model.params())
        True
    """
    return _descent("maml", rate)


def fomaml(rate: float = DEFAULT_RATE) -> Rule:
    """MAML's step, with the inner gradient a constant to the meta-gradient (Finn et al., 2017).

    Examples:
        >>> fs.fomaml(rate=0.1).first_order
        True
    """
    return _descent("fomaml", rate, first_order=True)


def anil(rate: float = DEFAULT_RATE) -> Rule:
    """Almost no inner loop: only the classifier moves (Raghu et al., 2020).

    Examples:
        >>> fs.anil(rate=0.1).moving(model)
        ('classifier.weight', 'classifier.bias')
    """
    return _descent("anil", rate, moves="cls")


def boil(rate: float = DEFAULT_RATE) -> Rule:
    """Body only update in the inner loop: all but the classifier moves (Oh et al., 2021).

    Examples:
        >>> "classifier.weight" in fs.boil(rate=0.1).moving(model)
        False
    """
    return _descent("boil", rate, moves="body")


def _descent(name: str, rate: float, moves: str = "all", first_order: bool = False) -> Rule:
    rate = require_rate(rate)
    update = partial(descend, rate=rate)
    return Rule(name=name, init=no_parameters, update=update, moves=moves, first_order=first_order)
