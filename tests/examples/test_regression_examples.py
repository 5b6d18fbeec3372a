"""Images as functions and forecasts: a meta-learned start beats a standard one from the first step."""

from __future__ import annotations

import sys

import pytest

import images_as_functions
import time_series


def test_images_as_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["images_as_functions.py", "--updates", "20", "--images", "5", "--gamma", "0", "0.01"]
    monkeypatch.setattr(sys, "argv", arguments)
    found = images_as_functions.main()
    assert set(found) == {"a standard start", "meta-learned", "conditioning, γ = 0.01"}
    standard, learned = found["a standard start"], found["meta-learned"]
    assert len(learned) == len(images_as_functions.STEPS)
    assert learned[1] > standard[1] + 1  # dB after one step
    assert learned[-1] > learned[0]


def test_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["time_series.py", "--updates", "80", "--series", "40"])
    found = time_series.main()
    assert found["meta-learned"][2] < found["random start"][2] < found["last value repeated"][0]
    assert found["meta-learned"][2] < 0.8 * found["meta-learned"][0]
