"""Shared by all tests: repeatable hypothesis runs, one thread, no global random state left behind."""

from __future__ import annotations

import signal

import pytest
import torch
from hypothesis import settings

# No deadline: the cores are shared with other test processes, and a slow moment is not a failure.
settings.register_profile("firststep", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("firststep")

# A shell starts background jobs with Ctrl-C ignored, and their children inherit that; tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1234)
