"""A seeded slice of the campaigns: `make campaign` runs more than a hundred times as much of the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from campaigns.fuzz import KINDS

ROOT = Path(__file__).parents[2]

KILLED = ("train-maml", "train-meta-sgd", "data-folder", "data-archive", "evaluate", "adapt", "paper-inline")
"""Only kills that start no further processes, which take seconds each."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the campaigns look into /proc")
def test_a_slice_has_no_violation() -> None:
    kinds = [word for kind in (*KINDS, *KILLED) for word in ("--kind", kind)]
    done = subprocess.run(
        [sys.executable, "-m", "campaigns", "all", "--cases", "60", "--kills", "7", "--seed", "7", *kinds]
        + ["--jobs", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
