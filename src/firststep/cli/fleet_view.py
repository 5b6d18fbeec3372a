"""Many runs as they are seen from the terminal: a bar for each that runs and one for all, or lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from firststep.jobs import Report

OVER = ("done", "was done", "failed")
SAY_EVERY = 30.0  # seconds between lines of one run, where there is no terminal


@contextmanager
def fleet_view(total: int) -> Iterator[Callable[[Report], None]]:
    """Gives the ``watch`` of :func:`firststep.jobs.run_fleet` for ``total`` jobs, shown on stderr."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if console.is_terminal:
        with _bars(console) as bars:
            yield _Bars(bars, total)
    else:
        yield _Lines(console, total)


def _end(report: Report, over: int, total: int) -> str:
    return f"{over}/{total} {escape(report.job)}: {_words(report)}"


def _words(report: Report) -> str:
    count = f" {report.update}/{report.total}" if report.total else ""
    return f"{report.state}{count}{f', {escape(report.text)}' if report.text else ''}"


class _Lines:
    """A line when a job's state changes, and now and then while it trains."""

    def __init__(self, console: Console, total: int) -> None:
        self.console, self.total, self.over = console, total, 0
        self.said: dict[str, tuple[str, float]] = {}

    def __call__(self, report: Report) -> None:
        state, when = self.said.get(report.job, ("waiting", 0.0))
        now = time.monotonic()
        if report.state in OVER:
            self.over += 1
            self.console.print(_end(report, self.over, self.total))
        elif report.state == "waiting":
            if report.text:  # waiting for its turn is nothing to tell
                self.console.print(f"{escape(report.job)}: {_words(report)}")
        elif report.state != state or now - when >= SAY_EVERY:
            self.console.print(f"{escape(report.job)}: {_words(report)}")
        else:
            return
        self.said[report.job] = report.state, now


def _bars(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)


class _Bars:
    """A row for each job that is at work, and the last one for all; what is over becomes a line above."""

    def __init__(self, bars: Progress, total: int) -> None:
        self.bars, self.total, self.over = bars, total, 0
        self.all = bars.add_task("all runs", total=total, words="")
        self.rows: dict[str, TaskID] = {}

    def __call__(self, report: Report) -> None:
        if report.state in ("training", "testing"):
            if report.job not in self.rows:
                self.rows[report.job] = self.bars.add_task(escape(report.job), total=None, words="")
            words = f"{report.state} {escape(report.text)}"
            row = self.rows[report.job]
            self.bars.update(row, completed=report.update, total=report.total or None, words=words)
            return
        if report.job in self.rows:
            self.bars.remove_task(self.rows.pop(report.job))
        if report.state in OVER:
            self.over += 1
            self.bars.update(self.all, completed=self.over)
            self.bars.console.print(_end(report, self.over, self.total))
        elif report.text:
            self.bars.console.print(f"{escape(report.job)}: {_words(report)}")
