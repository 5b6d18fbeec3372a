"""Real launches of torchrun for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence


def torchrun(processes: int, *program: str, options: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start ``torchrun --nproc-per-node PROCESSES PROGRAM``."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return subprocess.Popen(
        [*launcher, "--nproc-per-node", str(processes), *options, *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def ended(process: subprocess.Popen[str], timeout: float = 400) -> tuple[str, str]:
    """Return standard output and error once it has ended."""
    try:
        return process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.terminate()  # torchrun ends its processes
        process.communicate()
        raise


def finished(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return standard output and error once it has ended well."""
    out, errors = ended(process)
    assert process.returncode == 0, errors
    return out, errors
