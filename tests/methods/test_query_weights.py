"""MAML++'s weights of the query losses: equal at first, the last alone in the end."""

from __future__ import annotations

import pytest

from firststep import METHODS, annealed_query_weights, build_method


def test_annealing() -> None:
    assert annealed_query_weights(0, 1000, 5) == pytest.approx((0.2,) * 5)
    assert annealed_query_weights(50, 1000, 5) == pytest.approx((0.1,) * 4 + (0.6,))
    for update in range(0, 100, 7):
        weights = annealed_query_weights(update, 1000, 5)
        assert weights is not None
        assert sum(weights) == pytest.approx(1)
    assert annealed_query_weights(100, 1000, 5) is None
    assert annealed_query_weights(10**6, 1000, 5) is None
    assert annealed_query_weights(0, 1000, 1) is None  # one step: there is nothing else to count
    assert annealed_query_weights(0, 1, 5) == pytest.approx((0.2,) * 5)


@pytest.mark.parametrize("name", METHODS)
def test_only_maml_plus_plus_counts_earlier_steps(name: str) -> None:
    weights = build_method(name, steps=3).query_weights(0, 1000, 3)
    assert (weights is not None) == (name == "maml++")


@pytest.mark.parametrize("arguments", [(-1, 10, 5), (0, 0, 5), (0, 10, 0)])
def test_bad_arguments_are_named(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="update must be at least 0, updates and steps at least 1"):
        annealed_query_weights(*arguments)
