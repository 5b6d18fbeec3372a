"""Show progress on standard error: bars on a terminal, lines elsewhere.

Without a terminal, a run prints a line per event, and at least one per minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from firststep.cli.boundary import as_flags
from firststep.cli.terminal import console

if TYPE_CHECKING:
    from firststep.jobs import JobEvent, OnEvent
    from firststep.training import PretrainProgress, TrainingProgress

SECONDS_BETWEEN_LINES = 60.0


def _bars(screen: Console, last: ProgressColumn, transient: bool = False) -> Progress:
    """Return bars with a name on the left and text on the right; ``last`` shows the time."""
    name, words = (
        TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[words]")
    )
    columns = name, BarColumn(24), MofNCompleteColumn(), words, last
    return Progress(*columns, console=screen, transient=transient)


@contextmanager
def progress_bar(shown: bool = True) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function of (what, done, total): one bar, or one line per new ``what``."""
    screen = console(stderr=True)
    if not shown:
        yield lambda what, done, total: None
    elif screen.is_terminal:
        with _bars(screen, TimeRemainingColumn(), transient=True) as bars:
            row = bars.add_task("", total=None, words="")
            yield lambda what, done, total: bars.update(
                row, description=what, completed=done, total=total or None
            )
    else:
        begun: set[str] = set()

        def show_line(what: str, done: int, total: int) -> None:
            if what not in begun:
                begun.add(what)
                screen.print(f"{what} ...")

        yield show_line


Show = Callable[[int, int, str, str, bool], None]
"""Called with updates done, their total, the text beside the bar, a line, and whether to print it now."""


@contextmanager
def _run_view(name: str) -> Iterator[Show]:
    screen = console(stderr=True)
    if screen.is_terminal:
        with _bars(screen, TimeRemainingColumn()) as bars:
            row = bars.add_task(name, total=None, words="starting")

            def show(done: int, total: int, words: str, line: str, must: bool) -> None:
                bars.update(row, completed=done, total=total, words=words)
                if must:
                    bars.console.print(line)

            yield show
    else:
        last = time.monotonic()

        def say(done: int, total: int, words: str, line: str, must: bool) -> None:
            nonlocal last
            if must or time.monotonic() - last >= SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                screen.print(line)

        yield say


class _Pace:
    """Updates per second and seconds left, measured from the first update."""

    start: tuple[float, int] | None = None

    def __call__(self, done: int, total: int) -> tuple[float, float]:
        now = time.monotonic()
        self.start = self.start or (now, done)
        elapsed = now - self.start[0]
        rate = (done - self.start[1]) / elapsed if elapsed else 0.0
        return rate, (total - done) / rate if rate else 0.0


@contextmanager
def training_view(name: str, meta_batch: int, device: object) -> Iterator[Callable[[TrainingProgress], None]]:
    """Yield the ``on_update`` of :func:`firststep.training.train` for the run ``name``."""
    pace = _Pace()
    with _run_view(name) as show:

        def on_update(p: TrainingProgress) -> None:
            rate, left = pace(p.update, p.total)
            speed = f"{meta_batch * rate:.1f} tasks/s on {device}"
            validated = "" if p.validation is None else f", {_validation(p)}"
            loss = f"loss {p.loss:.3f}"
            line = f"{name}: update {p.update}/{p.total}, {loss}{validated}, {speed}, {left:.0f} s left"
            show(p.update, p.total, f"{loss}  {speed}", line, p.validation is not None)

        yield on_update


def _validation(progress: TrainingProgress) -> str:
    found, averaged = progress.validation, progress.averaged
    assert found is not None
    metric = found.metrics[found.main]
    unit = " %" if metric.percent else ""

    def shown(*values: float) -> str:
        return " ".join(f"{100 * value:.1f}" if metric.percent else f"{value:.3g}" for value in values) + unit

    return (
        f"val {metric.title} at steps 0..{found.steps[-1]}: {shown(*found.mean())}"
        + (f", of the averaged weights: {shown(*averaged.mean())}" if averaged is not None else "")
        + f", condition number {found.mean('condition_number')[0]:.3g}, rank {found.mean('rank')[0]:.3g}"
        + f", best {shown(progress.best)}"
    )


@contextmanager
def pretraining_view() -> Iterator[Callable[[PretrainProgress], None]]:
    """Yield the ``on_step`` of :func:`firststep.training.pretrain`."""
    pace = _Pace()
    with _run_view("pretraining") as show:

        def on_step(p: PretrainProgress) -> None:
            done, total = (p.epoch - 1) * p.steps + p.step, p.epochs * p.steps
            text = f"epoch {p.epoch}/{p.epochs}, loss {p.loss:.3f}"
            line = f"{text}, step {p.step}/{p.steps}, {pace(done, total)[1]:.0f} s left"
            if p.validation is not None:
                accuracy, width = (100 * value for value in p.validation)
                line += f", nearest class means on validation episodes {accuracy:.1f} ± {width:.1f} %"
                line += f", best {100 * p.best:.1f} %"
            show(done, total, text, line, p.validation is not None)

        yield on_step


@contextmanager
def jobs_view(total: int) -> Iterator[OnEvent]:
    """Yield the ``on_event`` of :func:`firststep.jobs.run_jobs` for ``total`` jobs."""
    screen = console(stderr=True)
    if screen.is_terminal:
        with _bars(screen, TimeElapsedColumn()) as bars:
            yield _JobBars(bars, total)
    else:
        yield _JobLines(screen, total)


def _words(event: JobEvent) -> str:
    count = f" {event.update}/{event.total}" if event.total else ""
    return f"{event.job}: {event.state}{count}{f', {as_flags(event.text)}' if event.text else ''}"


class _JobLines:
    """Print a line when a job's state changes, and occasionally while it trains."""

    def __init__(self, screen: Console, total: int) -> None:
        self.screen, self.total, self.finished = screen, total, 0
        self.printed: dict[str, tuple[str, float]] = {}

    def __call__(self, event: JobEvent) -> None:
        state, when = self.printed.get(event.job, ("waiting", 0.0))
        now = time.monotonic()
        if event.is_final:
            self.finished += 1
            self.screen.print(f"{self.finished}/{self.total} {_words(event)}")
        elif event.state == "waiting":
            if event.text:  # waiting jobs get no line
                self.screen.print(_words(event))
        elif event.state != state or now - when >= SECONDS_BETWEEN_LINES:
            self.screen.print(_words(event))
        else:
            return
        self.printed[event.job] = event.state, now


class _JobBars:
    """Show a bar per running job and one for all; a finished job becomes a line above them."""

    def __init__(self, bars: Progress, total: int) -> None:
        self.bars, self.total, self.finished = bars, total, 0
        self.all = bars.add_task("all runs", total=total, words="")
        self.rows: dict[str, TaskID] = {}

    def __call__(self, event: JobEvent) -> None:
        if event.state in ("training", "testing"):
            row = self.rows.get(event.job)
            if row is None:
                row = self.rows[event.job] = self.bars.add_task(event.job, total=None, words="")
            words = f"{event.state} {as_flags(event.text)}"
            self.bars.update(row, completed=event.update, total=event.total or None, words=words)
            return
        if event.job in self.rows:
            self.bars.remove_task(self.rows.pop(event.job))
        if event.is_final:
            self.finished += 1
            self.bars.update(self.all, completed=self.finished)
            self.bars.console.print(f"{self.finished}/{self.total} {_words(event)}")
        elif event.text:
            self.bars.console.print(_words(event))
