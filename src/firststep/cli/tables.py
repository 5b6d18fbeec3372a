"""How commands show results on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from firststep.evaluation.comparison import distinct_labels, initial_condition, paired_differences
from firststep.evaluation.evaluate import Evaluation


def console() -> Console:
    return Console(highlight=False, soft_wrap=True)


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
