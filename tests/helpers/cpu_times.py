"""A pytest plugin that prints CPU seconds by test file: ``pytest -p cpu_times``.

Wall time of a test depends on what else runs; CPU time, with all processes that the test started, does not.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

KEY = "cpu_seconds"


def used() -> float:
    """Return the CPU seconds of this process and all its descendants, ended or alive."""
    times = os.times()
    total = times.user + times.system + times.children_user + times.children_system
    return total + sum(_alive(child) for child in _children(os.getpid()))


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:  # it has ended, or this is not Linux
        return []


def _alive(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    ticks = sum(int(field) for field in fields[11:15])  # own and waited-for children's user and system time
    return ticks / os.sysconf("SC_CLK_TCK") + sum(_alive(child) for child in _children(pid))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[BEGAN] = used()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((KEY, used() - item.stash[BEGAN]))
    return report


BEGAN = pytest.StashKey[float]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    files: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for report in (each for reports in terminalreporter.stats.values() for each in reports):
        for key, seconds in getattr(report, "user_properties", []):
            if key == KEY and report.when == "teardown":
                files[report.nodeid.partition("::")[0]] += seconds
                tests[report.nodeid] += seconds
    terminalreporter.section(f"CPU seconds: {sum(files.values()):.0f} in all")
    for found in (files, tests):
        for name, seconds in found.most_common(50):
            terminalreporter.write_line(f"{seconds:8.1f}  {name}")
        terminalreporter.write_line("")
