"""Training runs as they are seen from the terminal: a bar for each.

Without a terminal, a line for each validation and at least one every minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from firststep.cli.terminal import console
from firststep.evaluation import Metric
from firststep.training import PretrainProgress, TrainingProgress

OnRunUpdate = Callable[[str, TrainingProgress], None]
SECONDS_BETWEEN_LINES = 60.0


class _Clock:
    """Tells when the last printed line is older than an interval."""

    def __init__(self, seconds: float = SECONDS_BETWEEN_LINES) -> None:
        self.seconds, self.last = seconds, time.monotonic()

    def is_due(self, must: bool = False) -> bool:
        now = time.monotonic()
        if not must and now - self.last < self.seconds:
            return False
        self.last = now
        return True


class _Speed:
    """Tasks per second of a run, from the first update that was seen."""

    def __init__(self, meta_batch: int) -> None:
        self.meta_batch = meta_batch
        self.start: tuple[float, int] | None = None

    def __call__(self, update: int) -> float:
        if self.start is None:
            self.start = time.monotonic(), update
        elapsed = time.monotonic() - self.start[0]
        return self.meta_batch * (update - self.start[1]) / elapsed if elapsed else 0.0


def _words(name: str, progress: TrainingProgress) -> str:
    """Format the result of a validation."""
    assert progress.validation is not None
    measured = progress.validation
    metric = measured.metrics[measured.main]
    values = " ".join(_value(metric, value) for value in measured.mean())
    unit = " %" if metric.percent else ""
    kappa = progress.validation.mean("condition_number")[0]
    rank = progress.validation.mean("rank")[0]
    last = progress.validation.steps[-1]
    averaged = ""
    if progress.averaged is not None:
        of_average = " ".join(_value(metric, value) for value in progress.averaged.mean())
        averaged = f", of the averaged weights: {of_average}{unit}"
    return (
        f"{name}: update {progress.update}/{progress.total}, loss {progress.loss:.3f}, val {metric.title} at "
        f"steps 0..{last}: {values}{unit}{averaged}, condition number {kappa:.3g}, rank {rank:.3g}, "
        f"best {_value(metric, progress.best)}{unit}"
    )


def _value(metric: Metric, value: float) -> str:
    return f"{100 * value:.1f}" if metric.percent else f"{value:.3g}"


@contextmanager
def training_view(names: Sequence[str], meta_batch: int) -> Iterator[OnRunUpdate]:
    """Gives a function of (run's name, progress); figures go to standard error."""
    screen = console(stderr=True)
    speeds = {name: _Speed(meta_batch) for name in names}
    if not screen.is_terminal:
        clocks = {name: _Clock() for name in names}

        def say(name: str, progress: TrainingProgress) -> None:
            rate = speeds[name](progress.update)
            if clocks[name].is_due(progress.validation is not None):
                left = meta_batch * (progress.total - progress.update) / rate if rate else 0.0
                words = (
                    _words(name, progress)
                    if progress.validation is not None
                    else f"{name}: update {progress.update}/{progress.total}, loss {progress.loss:.3f}"
                )
                screen.print(f"{words}, {rate:.1f} tasks/s, {left:.0f} s left")

        yield say
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=screen) as bars:
        rows = {name: bars.add_task(name, total=None, figures="starting") for name in names}

        def show(name: str, progress: TrainingProgress) -> None:
            rate = speeds[name](progress.update)
            bars.update(
                rows[name],
                completed=progress.update,
                total=progress.total,
                figures=f"loss {progress.loss:.3f}  {rate:.1f} tasks/s",
            )
            if progress.validation is not None:
                bars.console.print(_words(name, progress))

        yield show


@contextmanager
def pretraining_view() -> Iterator[Callable[[PretrainProgress], None]]:
    """Gives a function of the progress; on standard error."""
    screen = console(stderr=True)
    start = time.monotonic()
    first: list[int] = []

    def words(progress: PretrainProgress) -> str:
        done = (progress.epoch - 1) * progress.steps + progress.step
        if not first:
            first.append(done)
        seconds = (time.monotonic() - start) / max(1, done - first[0])
        left = seconds * (progress.epochs * progress.steps - done)
        text = f"epoch {progress.epoch}/{progress.epochs}, loss {progress.loss:.3f}"
        if progress.validation is not None:
            accuracy, width = (100 * value for value in progress.validation)
            text += f", nearest class means on validation episodes {accuracy:.1f} ± {width:.1f} %"
            text += f", best {100 * progress.best:.1f} %"
        return f"{text}, {left:.0f} s left"

    if not screen.is_terminal:
        clock = _Clock()

        def say(progress: PretrainProgress) -> None:
            line = words(progress)
            if clock.is_due(progress.validation is not None):
                screen.print(f"{line} (step {progress.step}/{progress.steps})")

        yield say
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn())
    with Bars(*columns, console=screen) as bars:
        row = bars.add_task("starting", total=None)

        def show(progress: PretrainProgress) -> None:
            line = words(progress)
            done = (progress.epoch - 1) * progress.steps + progress.step
            bars.update(row, description=line, completed=done, total=progress.epochs * progress.steps)
            if progress.validation is not None:
                bars.console.print(line)

        yield show
