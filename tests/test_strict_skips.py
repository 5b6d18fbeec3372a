"""CI fails where a test is skipped for a reason that is not listed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from strict_skips import ALLOWED

TESTS = """
import pytest

def test_listed():
    pytest.skip({listed!r})

def test_at_run_time():
    pytest.skip("no such thing here")

@pytest.mark.skipif(True, reason="nor that")
def test_marked():
    pass
"""


@pytest.mark.parametrize(("ci", "expected"), [("true", "1 failed, 1 skipped, 1 error"), ("", "3 skipped")])
def test_a_skip_that_is_not_listed_fails_in_ci(ci: str, expected: str, tmp_path: Path) -> None:
    listed = ALLOWED.read_text().splitlines()[-1]
    (tmp_path / "test_skips.py").write_text(TESTS.format(listed=listed))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "strict_skips", "--rootdir", tmp_path, tmp_path],
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
            "CI": ci,
            "PYTHONPATH": str(Path(__file__).parent / "helpers"),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert expected in done.stdout
    assert ("CI may not skip this test: nor that" in done.stdout) == bool(ci)
