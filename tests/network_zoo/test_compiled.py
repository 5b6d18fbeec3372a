"""Compiled: the operations that had to be replaced, and several inputs; exact too."""

from __future__ import annotations

import pytest

from exactness import check_exact
from third_party import of_third_party
from zoo import in_zoo


@pytest.mark.parametrize(
    "name", ["transformer", "squeeze-excite", "bag-max", "two-inputs", "unused-parameter"]
)
def test_the_compiled_meta_gradient_is_that_of_plain_autograd(name: str) -> None:
    check_exact(*in_zoo(name), subset="cls", compile=True)


@pytest.mark.parametrize("name", ["timm-vit", "hf-bert"])
def test_that_of_third_parties_too(name: str) -> None:
    check_exact(*of_third_party(name), subset="cls+emb", rate=0.01, compile=True)
