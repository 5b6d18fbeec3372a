"""docs/methods.md names every method, with the right counts; tests/docs runs its code."""

from __future__ import annotations

from pathlib import Path

import pytest

from firststep import METHODS, build_backbone, build_method
from firststep.methods import count_parameters

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()
TABLE = [line for line in PAGE.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_there_with_its_count(name: str) -> None:
    (line,) = [line for line in TABLE if f"`{name}`" in line]
    added = count_parameters(build_method(name), build_backbone("conv4", filters=64)).added
    assert f"| {added:,} " in line
