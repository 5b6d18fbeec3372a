"""A seeded slice of the campaigns: `make campaign` runs fifty times as much of the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the campaigns look into /proc")

QUICK_KILLS = (
    "train-maml",
    "train-meta-sgd",
    "data-folder",
    "data-archive",
    "evaluate",
    "adapt",
    "paper-inline",
)


def campaign(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "campaigns", *arguments, "--jobs", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_hostile_inputs_are_used_or_refused_in_a_line() -> None:
    done = campaign("fuzz", "--cases", "150", "--seed", "7")
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_was_killed_ends_as_if_it_had_not_been() -> None:
    kinds = [word for kind in QUICK_KILLS for word in ("--kind", kind)]
    done = campaign("kills", "--cases", "15", "--seed", "7", *kinds)
    assert done.returncode == 0, done.stdout + done.stderr
