"""One folder of smoke-scale runs for all tests of this folder: the planner sees that each is trained once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def smoke_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The workers of pytest-xdist have neighbouring folders and share their parent; without workers the parent
    # outlives the session.
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "paper-runs"
