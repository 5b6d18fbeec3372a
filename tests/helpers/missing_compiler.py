"""Skip tests that need a C++ compiler if there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

REASON = "there is no C++ compiler here"
SAYS = "No working C++ compiler"
"""Torch's message, which firststep's own warning quotes."""

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason=REASON)
"""For tests that compile in a process of their own."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    try:
        return (yield)
    except Exception as error:
        if SAYS in str(error) and shutil.which("g++") is None:
            pytest.skip(REASON)
        raise


pytest_runtest_setup = pytest_runtest_call  # fixtures compile too
