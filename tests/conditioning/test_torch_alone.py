"""The loss is one import for people who have torch and nothing else."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import torch
with_torch = set(sys.modules)
import firststep
loss = firststep.conditioning_loss(torch.randn(4, 3), torch.randn(4, 2), torch.tensor([0, 1, 0, 1]))
assert loss.isfinite()
added = {name.split(".")[0] for name in set(sys.modules) - with_torch}
print(sorted(added - set(sys.stdlib_module_names) - {"firststep", "torch"}))
"""


def test_import_and_call_with_torch_alone() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
