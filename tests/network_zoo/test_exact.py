"""Every kind of network: meta-gradient, Gram matrix and adaptation are those of plain autograd by hand."""

from __future__ import annotations

import pytest

from exactness import check_exact, check_gram_and_adaptation
from zoo import ZOO, in_zoo


@pytest.mark.parametrize("engine", ["stepwise", "unrolled"])
@pytest.mark.parametrize("name", ZOO)
def test_the_meta_gradient_is_that_of_plain_autograd(name: str, engine: str) -> None:
    check_exact(*in_zoo(name), engine=engine)


@pytest.mark.parametrize("name", ZOO)
def test_steps_that_are_computed_again_give_the_same(name: str) -> None:
    check_exact(*in_zoo(name), subset="cls", memory=0)


@pytest.mark.parametrize("name", ZOO)
def test_gram_matrix_and_adaptation(name: str) -> None:
    check_gram_and_adaptation(*in_zoo(name))
