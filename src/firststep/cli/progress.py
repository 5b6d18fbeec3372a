"""A progress bar on a terminal; elsewhere one line for each thing that begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from firststep.cli.terminal import console


@contextmanager
def progress_bar(shown: bool = True) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function of (what, done, total); it writes to standard error."""
    if not shown:
        yield lambda what, done, total: None
        return
    screen = console(stderr=True)
    if not screen.is_terminal:
        begun: set[str] = set()

        def show_line(what: str, done: int, total: int) -> None:
            if what not in begun:
                begun.add(what)
                screen.print(f"{what} ...")

        yield show_line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show_bar(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total or None)

        yield show_bar
