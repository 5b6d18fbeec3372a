"""Every kind of network: meta-gradient, Gram matrix and adaptation are those of plain autograd by hand."""

from __future__ import annotations

from typing import Any

import pytest

from exactness import check_exact, check_gram_and_adaptation
from zoo import ZOO, in_zoo


@pytest.mark.parametrize("name", ZOO)
def test_the_meta_gradient_is_that_of_plain_autograd(name: str) -> None:
    check_exact(*in_zoo(name))


# Batch norm, several inputs, and a mask: what could depend on the engine rather than on the network.
@pytest.mark.parametrize("options", [{"engine": "unrolled"}, {"subset": "cls", "memory": 0}], ids=str)
@pytest.mark.parametrize("name", ["squeeze-excite", "two-inputs", "transformer-masked"])
def test_unrolled_and_recomputed_steps_give_the_same(name: str, options: dict[str, Any]) -> None:
    check_exact(*in_zoo(name), **options)


@pytest.mark.parametrize("name", ZOO)
def test_gram_matrix_and_adaptation(name: str) -> None:
    check_gram_and_adaptation(*in_zoo(name))
