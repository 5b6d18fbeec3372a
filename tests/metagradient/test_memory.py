"""Peak memory of a fresh process: flat in the number of steps for the stepwise engine as it comes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from firststep import FunctionalModule, maml, meta_gradient
from firststep.metagradient import engine as engine_module
from networks import small_conv, small_task
from peaks import PEAK

PROGRAM = (
    PEAK
    + """
import sys
import torch
from firststep import Conditioning, FunctionalModule, Task, build_backbone, maml, meta_gradient
torch.set_num_threads(1)
engine, steps = sys.argv[1], int(sys.argv[2])
g = torch.Generator().manual_seed(0)
model = FunctionalModule(build_backbone("conv4", filters=32, image_size=84))
task = Task(
    torch.randn(10, 3, 84, 84, generator=g), torch.arange(5).repeat(2),
    torch.randn(10, 3, 84, 84, generator=g), torch.arange(5).repeat(2),
)
meta_gradient(model, maml(), [task], steps=steps, conditioning=Conditioning(), engine=engine)
print(peak())
"""
)


def peak(engine: str, steps: int) -> int:
    command = [sys.executable, "-c", PROGRAM, engine, str(steps)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_stepwise_memory_does_not_grow_with_the_steps_and_unrolled_does() -> None:
    assert peak("stepwise", 20) <= 1.15 * peak("stepwise", 5)
    assert peak("unrolled", 20) > 1.5 * peak("unrolled", 5)


@pytest.mark.parametrize(("memory", "told"), [(None, 1), (2**20, 1), (0, 0)])
def test_the_c_library_keeps_freed_memory_unless_memory_is_0(
    monkeypatch: pytest.MonkeyPatch, memory: int | None, told: int
) -> None:
    calls: list[int] = []
    scope = engine_module.freed_memory_kept

    @contextmanager
    def counted() -> Iterator[None]:
        calls.append(1)
        with scope():
            yield

    monkeypatch.setattr(engine_module, "freed_memory_kept", counted)
    meta_gradient(FunctionalModule(small_conv()), maml(), [small_task()], steps=1, memory=memory)
    assert len(calls) == told
