"""Training runs as they are seen from the terminal: a bar for each, or a line for each validation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from firststep.cli.terminal import console
from firststep.training import TrainingProgress

OnRunUpdate = Callable[[str, TrainingProgress], None]


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
    """What a validation found."""
    assert progress.validation is not None
    accuracies = " ".join(f"{100 * value:.1f}" for value in progress.validation.mean())
    kappa = progress.validation.mean("condition_number")[0]
    rank = progress.validation.mean("rank")[0]
    last = progress.validation.steps[-1]
    return (
        f"{name}: update {progress.update}/{progress.total}, loss {progress.loss:.3f}, val accuracy at steps "
        f"0..{last}: {accuracies} %, condition number {kappa:.3g}, rank {rank:.3g}, "
        f"best {100 * progress.best:.1f} %"
    )


@contextmanager
def training_view(names: Sequence[str], meta_batch: int) -> Iterator[OnRunUpdate]:
    """Gives a function of (run's name, progress); figures go to standard error."""
    screen = console(stderr=True)
    speeds = {name: _Speed(meta_batch) for name in names}
    if not screen.is_terminal:

        def say(name: str, progress: TrainingProgress) -> None:
            rate = speeds[name](progress.update)
            if progress.validation is not None:
                left = meta_batch * (progress.total - progress.update) / rate if rate else 0.0
                screen.print(f"{_words(name, progress)}, {rate:.1f} tasks/s, {left:.0f} s left")

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
