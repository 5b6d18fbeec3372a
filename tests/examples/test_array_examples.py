"""Networks for signals and texts learn from the user's own arrays."""

from __future__ import annotations

from types import ModuleType

import pytest

import signals
import text


@pytest.mark.parametrize(("example", "least"), [(signals, 0.55), (text, 0.65)], ids=["signals", "text"])
def test_classes_never_met_are_told_apart(example: ModuleType, least: float) -> None:
    found = example.main(updates=100)
    assert found["after"] > least  # chance is 0.2
    assert found["after"] > found["before"] + 0.15
