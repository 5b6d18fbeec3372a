"""Peak memory of a fresh process: flat in the number of steps for the stepwise engine as it comes."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from firststep import maml
from firststep.functional import FunctionalModule, Learner, meta_gradient
from networks import small_conv, small_task
from peaks import PEAK

PROGRAM = (
    PEAK
    + """
import sys
import torch
from firststep import Conditioning, Task, build_backbone, maml
from firststep.functional import EngineOptions, FunctionalModule, Learner, meta_gradient
torch.set_num_threads(1)
engine, steps = sys.argv[1], int(sys.argv[2])
g = torch.Generator().manual_seed(0)
model = FunctionalModule(build_backbone("conv4", filters=32, image_size=84))
task = Task(
    torch.randn(5, 3, 84, 84, generator=g), torch.arange(5),
    torch.randn(5, 3, 84, 84, generator=g), torch.arange(5),
)
options = EngineOptions(engine=engine)
meta_gradient(Learner(model, maml()), [task], steps=steps, conditioning=Conditioning(), options=options)
print(peak())
"""
)


def peak(engine: str, steps: int) -> int:
    command = [sys.executable, "-c", PROGRAM, engine, str(steps)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_stepwise_memory_does_not_grow_with_the_steps_and_unrolled_does() -> None:
    assert peak("stepwise", 20) <= 1.15 * peak("stepwise", 5)
    assert peak("unrolled", 20) > 1.5 * peak("unrolled", 5)


def test_the_c_library_s_settings_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the whole process's: only its owner may ask for them, with ``keep_freed_memory``."""

    def asked(*_: object) -> None:
        raise AssertionError("a library asked the C library for something")

    monkeypatch.setattr(ctypes, "CDLL", asked)
    meta_gradient(Learner(FunctionalModule(small_conv()), maml()), [small_task()], steps=1)
