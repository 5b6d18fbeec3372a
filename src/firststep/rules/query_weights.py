"""Weights of the query losses after every inner step, by the update of a training."""

from __future__ import annotations

from collections.abc import Callable

QueryWeights = Callable[[int, int, int], tuple[float, ...] | None]

ANNEALED_SHARE = 0.1  # share of all meta-updates; the authors anneal in the first 10 of 100 epochs


def last_step_only(update: int, updates: int, steps: int) -> None:
    """Return None: only the query loss after the last step counts."""


def equal_query_weights(update: int, updates: int, steps: int) -> tuple[float, ...]:
    """Return 1/K for each of the K steps: every step is trained alike.

    Examples:
        >>> fs.equal_query_weights(update=0, updates=1000, steps=4)
        (0.25, 0.25, 0.25, 0.25)
    """
    return (1 / steps,) * steps


def annealed_query_weights(update: int, updates: int, steps: int) -> tuple[float, ...] | None:
    """Return the weights of the query losses after steps 1..K; None once only the last step counts.

    All weights start at 1/K. Over the first tenth of training the last weight rises to 1 and the others fall
    linearly to 0, so they always sum to 1. The authors stop at 3 % instead of 0. At 0 the other query losses
    need not be computed.

    Args:
        update: the meta-update, counted from 0.
        updates: number of meta-updates of the training.
        steps: number of inner steps K.

    Examples:
        >>> fs.annealed_query_weights(update=0, updates=1000, steps=4)
        (0.25, 0.25, 0.25, 0.25)
        >>> fs.annealed_query_weights(update=500, updates=1000, steps=4)
    """
    if update < 0 or updates < 1 or steps < 1:
        raise ValueError(
            "update must be at least 0, updates and steps at least 1; "
            f"got update={update}, updates={updates}, steps={steps}"
        )
    done = min(1.0, update / (ANNEALED_SHARE * updates))
    if done == 1.0 or steps == 1:
        return None
    early = (1 - done) / steps
    return (early,) * (steps - 1) + (1 - (steps - 1) * early,)


QUERY_WEIGHTS: dict[str, QueryWeights] = {
    "last": last_step_only,
    "equal": equal_query_weights,
    "annealed": annealed_query_weights,
}
"""Name → function (update, updates, steps) that returns the query weights, for every method.

Examples:
    >>> fs.QUERY_WEIGHTS["equal"](0, 1000, 2)
    (0.5, 0.5)
"""
