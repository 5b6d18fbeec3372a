"""Show results on a terminal."""

from __future__ import annotations

from rich import table as rich_table
from rich.console import Console, JustifyMethod
from rich.text import Text

from firststep.utils import Table

COLUMNS = 80
"""Width that fits every terminal."""


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        """Raise when the reader, such as ``head``, has left; rich would exit with an error."""
        raise BrokenPipeError


def console(width: int | None = None, stderr: bool = False) -> Console:
    """Return a console without markup: brackets in the name of a class or file are part of the name."""
    return _Screen(highlight=False, soft_wrap=True, markup=False, width=width, stderr=stderr)


def render(table: Table) -> rich_table.Table:
    """Return the table for a terminal, without markup: ``[bold]`` in a class name is part of the name."""
    shown = rich_table.Table(title=Text(table.title) if table.title else None)
    for number, name in enumerate(table.columns):
        # Fold long cells: an ellipsis could hide the difference between two names.
        justify: JustifyMethod = "left" if number < table.left_aligned else "right"
        shown.add_column(Text(name), justify=justify, overflow="fold")
    for number, row in enumerate(table.rows):
        if number and number in table.sections:
            shown.add_section()
        shown.add_row(*(Text(cell.text, style="bold" if cell.bold else "") for cell in row))
    return shown


def print_wide(table: Table, stderr: bool = False) -> None:
    """Print a table without truncating numbers: on a narrow terminal, lines are longer than its width."""
    shown = render(table)
    for column in shown.columns:
        column.no_wrap = True
    needed = Console(width=10_000).measure(shown).maximum
    console(width=max(needed, console().width), stderr=stderr).print(shown)
