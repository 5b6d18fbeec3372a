"""docs/methods.md: its code runs, it names every method, and its counts are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from firststep import METHODS, build_backbone, build_method
from firststep.rules import count_parameters

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()
TABLE = [line for line in PAGE.splitlines() if line.startswith("| `")]


def test_the_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "methods.md", "exec"), {})


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_there_with_its_count(name: str) -> None:
    (line,) = [line for line in TABLE if f"`{name}`" in line]
    added = count_parameters(build_method(name), build_backbone("conv4", filters=64)).added
    assert f"| {added:,} " in line
