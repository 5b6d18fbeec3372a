"""The paper's numbers as they ship."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from firststep import FirststepError
from firststep.paper.numbers import NUMBERS, published

SHARED = Path(__file__).parents[3] / "shared" / "paper"


@pytest.mark.parametrize("name", NUMBERS)
def test_the_packaged_copy_is_the_original(name: str) -> None:
    if not SHARED.is_dir():
        pytest.skip("the paper's numbers are not beside the repository")
    packaged = files("firststep.paper.numbers").joinpath(f"{name}.csv").read_bytes()
    assert packaged == (SHARED / f"{name}.csv").read_bytes()


def test_every_file_is_loaded() -> None:
    folder = files("firststep.paper.numbers")
    assert {f"{name}.csv" for name in NUMBERS} == {f.name for f in folder.iterdir() if f.name.endswith("csv")}
    depths = published("depths")
    assert len(depths) == 5 * 4 * 2 * 2 * 5  # datasets, networks, shots, methods, steps
    assert set(depths["backbone"]) == {"conv4", "conv6", "resnet10", "resnet18"}
    with pytest.raises(FirststepError, match="did you mean depths"):
        published("depth")
