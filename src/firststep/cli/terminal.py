"""How commands show results on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from firststep.evaluation.comparison import distinct_labels, initial_condition, paired_differences
from firststep.evaluation.evaluate import Evaluation
from firststep.utils import table as tables


def console() -> Console:
    return Console(highlight=False, soft_wrap=True)


def render(table: tables.Table) -> Table:
    """The table for a terminal. Text is shown as it is: ``[bold]`` in a class name is part of the name."""
    shown = Table(*map(Text, table.columns), title=Text(table.title) if table.title else None)
    for number, column in enumerate(shown.columns):
        column.justify = "left" if number < table.left_aligned else "right"
    for number, row in enumerate(table.rows):
        if number and number in table.sections:
            shown.add_section()
        shown.add_row(*(Text(cell.text, style="bold" if cell.bold else "") for cell in row))
    return shown


def print_wide(table: tables.Table) -> None:
    """Numbers are never cut: on a narrow terminal lines are longer than it is."""
    shown = render(table)
    for column in shown.columns:
        column.no_wrap = True
    needed = Console(width=10_000).measure(shown).maximum
    Console(highlight=False, soft_wrap=True, width=max(needed, console().width)).print(shown)


def accuracy_table(evaluations: Sequence[Evaluation]) -> Table:
    """A row for each step, a column for each model, then the paired differences to the first model."""
    settings = evaluations[0].settings
    title = (
        f"{settings['data']} {settings['split']}, {settings['ways']}-way {settings['shots']}-shot, "
        f"{settings['episodes']} episodes: accuracy in % with 95 % half-width"
    )
    labels = distinct_labels(list(evaluations))
    table = Table("steps", *labels, *(f"{label} − {labels[0]}" for label in labels[1:]), title=title)
    for column in table.columns:
        column.justify = "right"
    by_step = [{row["step"]: row for row in evaluation.rows()} for evaluation in evaluations]
    pairs = [{d.step: d for d in paired_differences(evaluations[0], other)} for other in evaluations[1:]]
    for step in by_step[0]:
        cells = [
            f"{rows[step]['accuracy']:.1f} ± {rows[step]['ci95']:.1f}" if step in rows else "–"
            for rows in by_step
        ]
        for pair in pairs:
            d = pair.get(step)
            text = "–" if d is None else f"{d.difference:+.1f} ± {d.ci95:.1f}"
            cells.append(f"[bold]{text}[/]" if d is not None and d.is_clear else text)
        table.add_row(str(step), *cells)
    table.add_section()
    table.add_row("condition number", *(initial_condition(evaluation) for evaluation in evaluations))
    return table


def step_table(evaluation: Evaluation) -> Table:
    """A row for each step of one model."""
    table = Table("steps", "accuracy %", "95 % half-width", "condition number")
    for column in table.columns:
        column.justify = "right"
    for row in evaluation.rows():
        kappa = row["condition_number"]
        table.add_row(
            str(row["step"]),
            f"{row['accuracy']:.2f}",
            f"{row['ci95']:.2f}",
            "" if kappa is None else f"{kappa:.4g}",
        )
    return table
