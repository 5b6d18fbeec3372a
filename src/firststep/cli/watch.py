"""A training run as it is seen from the terminal: a bar with figures, or a line for each validation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from firststep.training.loop import Progress as TrainingProgress
from firststep.training.loop import Watcher


def validation_words(progress: TrainingProgress) -> str:
    """`step 0..5: 20.0 41.2 ... %, condition number 123` of the newest validation."""
    assert progress.validation is not None
    accuracies = " ".join(f"{100 * value:.1f}" for value in progress.validation.mean())
    kappa = progress.validation.condition_number()[0]
    last = progress.validation.steps[-1]
    return f"val accuracy at steps 0..{last}: {accuracies} %, condition number {kappa:.3g}"


@contextmanager
def training_view(name: str, meta_batch: int) -> Iterator[Watcher]:
    """A watcher for :func:`firststep.training.train`; figures go to standard error."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    started: dict[str, float] = {}

    def speed(update: int) -> float:
        started.setdefault("time", time.monotonic())
        started.setdefault("update", update)
        elapsed = time.monotonic() - started["time"]
        return meta_batch * (update - started["update"]) / elapsed if elapsed else 0.0

    if not console.is_terminal:

        def say(progress: TrainingProgress) -> None:
            rate = speed(progress.update)
            if progress.validation is not None:
                left = meta_batch * (progress.total - progress.update) / rate if rate else 0.0
                console.print(
                    f"{name}: update {progress.update}/{progress.total}, loss {progress.loss:.3f}, "
                    f"{validation_words(progress)}, best {100 * progress.best:.1f} %, {rate:.1f} tasks/s, "
                    f"{left:.0f} s left"
                )

        yield say
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        row = bar.add_task(name, total=None, figures="starting")

        def show(progress: TrainingProgress) -> None:
            rate = speed(progress.update)
            bar.update(
                row,
                completed=progress.update,
                total=progress.total,
                figures=f"loss {progress.loss:.3f}  best {100 * max(progress.best, 0):.1f} %  "
                f"{rate:.1f} tasks/s",
            )
            if progress.validation is not None:
                bar.console.print(f"update {progress.update}: {validation_words(progress)}")

        yield show
