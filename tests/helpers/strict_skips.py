"""Let skipped tests fail with ``CI=true``, unless ``tests/allowed_skips.txt`` lists the reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

ALLOWED = Path(__file__).parents[1] / "allowed_skips.txt"
Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def _strict(report: Report) -> Report:
    if os.environ.get("CI") != "true" or not report.skipped or not isinstance(report.longrepr, tuple):
        return report
    reason = report.longrepr[2].removeprefix("Skipped: ")
    if reason not in ALLOWED.read_text().splitlines():
        report.outcome = "failed"
        remedy = f"Install what it needs, or add the reason to {ALLOWED.name}."
        report.longrepr = f"CI may not skip this test: {reason}\n{remedy}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[pytest.TestReport]:
    return _strict((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[pytest.CollectReport]:
    return _strict((yield))
