"""A progress bar on a terminal; elsewhere one line for each thing that begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(shown: bool = True) -> Iterator[Callable[[str, int, int], None]]:
    """Gives a function of (what, done, total); on standard error, so that output stays clean."""
    if not shown:
        yield lambda what, done, total: None
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        begun: set[str] = set()

        def show_line(what: str, done: int, total: int) -> None:
            if what not in begun:
                begun.add(what)
                console.print(f"{what} ...", highlight=False)

        yield show_line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show_bar(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total or None)

        yield show_bar
