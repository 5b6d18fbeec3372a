"""Many runs as they are seen from the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console

from firststep.fleet import Job, Report


@contextmanager
def fleet_view(jobs: Sequence[Job]) -> Iterator[Callable[[Report], None]]:
    """Gives a function to be told of every report; a line for each change, on standard error."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    over = 0

    def say(report: Report) -> None:
        nonlocal over
        if report.state in ("done", "was done", "failed"):
            over += 1
            console.print(f"{over}/{len(jobs)} {report.job}: {report.state} {report.text}", markup=False)

    yield say
