"""The benchmarks' JAX peer computes the same meta-gradient."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a process of its own: JAX starts threads, and other tests fork.
PROCESS = """
import torch
from firststep import Task, build_backbone, maml
from firststep.functional import FunctionalModule, MetaGradient
from benchmarks.jax_peer import jax_gradient

source = torch.Generator().manual_seed(0)
model = FunctionalModule(build_backbone("conv4", filters=2, image_size=17, channels=1, ways=2).double())
images = [torch.rand(count, 1, 17, 17, generator=source, dtype=torch.float64) for count in (4, 6)]
task = Task(images[0], torch.arange(4) % 2, images[1], torch.arange(6) % 2)

for remat, steps in ((False, 1), (True, 2)):
    expected = MetaGradient(model, maml(0.1), steps=steps)(model.params(), {}, [task]).params
    found = jax_gradient(model, task, steps, 0.1, remat)()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-11)
"""


@pytest.mark.slow
def test_the_gradient_is_ours_in_float64() -> None:
    done = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
