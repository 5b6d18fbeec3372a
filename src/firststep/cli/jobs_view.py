"""Many runs on the terminal: a progress bar for each that runs and one for all, or lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from firststep.cli.boundary import as_flags
from firststep.jobs import JobEvent, OnEvent

SECONDS_BETWEEN_LINES = 30.0  # of one run, where there is no terminal


@contextmanager
def jobs_view(total: int) -> Iterator[OnEvent]:
    """Yield the ``on_event`` of :func:`firststep.jobs.run_jobs` for ``total`` jobs, shown on stderr."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if console.is_terminal:
        with _bars(console) as bars:
            yield _Bars(bars, total)
    else:
        yield _Lines(console, total)


def _end(event: JobEvent, finished: int, total: int) -> str:
    return f"{finished}/{total} {escape(event.job)}: {_words(event)}"


def _words(event: JobEvent) -> str:
    count = f" {event.update}/{event.total}" if event.total else ""
    return f"{event.state}{count}{f', {escape(as_flags(event.text))}' if event.text else ''}"


class _Lines:
    """A line when a job's state changes, and now and then while it trains."""

    def __init__(self, console: Console, total: int) -> None:
        self.console, self.total, self.finished = console, total, 0
        self.printed: dict[str, tuple[str, float]] = {}

    def __call__(self, event: JobEvent) -> None:
        state, when = self.printed.get(event.job, ("waiting", 0.0))
        now = time.monotonic()
        if event.is_final:
            self.finished += 1
            self.console.print(_end(event, self.finished, self.total))
        elif event.state == "waiting":
            if event.text:  # waiting for its turn is not worth a line
                self.console.print(f"{escape(event.job)}: {_words(event)}")
        elif event.state != state or now - when >= SECONDS_BETWEEN_LINES:
            self.console.print(f"{escape(event.job)}: {_words(event)}")
        else:
            return
        self.printed[event.job] = event.state, now


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
    """A row for each running job and one for all; a finished job becomes a line above them."""

    def __init__(self, bars: Progress, total: int) -> None:
        self.bars, self.total, self.finished = bars, total, 0
        self.all = bars.add_task("all runs", total=total, words="")
        self.rows: dict[str, TaskID] = {}

    def __call__(self, event: JobEvent) -> None:
        if event.state in ("training", "testing"):
            if event.job not in self.rows:
                self.rows[event.job] = self.bars.add_task(escape(event.job), total=None, words="")
            words = f"{event.state} {escape(as_flags(event.text))}"
            row = self.rows[event.job]
            self.bars.update(row, completed=event.update, total=event.total or None, words=words)
            return
        if event.job in self.rows:
            self.bars.remove_task(self.rows.pop(event.job))
        if event.is_final:
            self.finished += 1
            self.bars.update(self.all, completed=self.finished)
            self.bars.console.print(_end(event, self.finished, self.total))
        elif event.text:
            self.bars.console.print(f"{escape(event.job)}: {_words(event)}")
