"""Networks of timm and Hugging Face: as exact as our own."""

from __future__ import annotations

import pytest

from exactness import check_exact, check_gram_and_adaptation
from third_party import THIRD_PARTY, of_third_party


@pytest.mark.parametrize("name", THIRD_PARTY)
def test_the_meta_gradient_is_that_of_plain_autograd(name: str) -> None:
    check_exact(*of_third_party(name), subset="cls+emb", rate=0.01)


@pytest.mark.parametrize("name", THIRD_PARTY)
def test_gram_matrix_and_adaptation(name: str) -> None:
    check_gram_and_adaptation(*of_third_party(name))
