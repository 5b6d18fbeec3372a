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
    """A row for each model and a column for each step; then the paired differences to the first model."""
    steps = [row["step"] for row in evaluations[0].rows()]
    settings = evaluations[0].settings
    title = (
        f"{settings['data']} {settings['split']}, {settings['ways']}-way {settings['shots']}-shot, "
        f"{settings['episodes']} episodes: accuracy in % with 95 % half-width"
    )
    table = Table("model", *(f"step {step}" for step in steps), "condition number", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    labels = distinct_labels(list(evaluations))
    for label, evaluation in zip(labels, evaluations, strict=True):
        by_step = {row["step"]: row for row in evaluation.rows()}
        cells = [
            f"{by_step[s]['accuracy']:.1f} ±{by_step[s]['ci95']:.1f}" if s in by_step else "–" for s in steps
        ]
        table.add_row(label, *cells, initial_condition(evaluation))
    for label, evaluation in zip(labels[1:], evaluations[1:], strict=True):
        by_difference = {d.step: d for d in paired_differences(evaluations[0], evaluation)}
        cells = []
        for step in steps:
            d = by_difference.get(step)
            text = "–" if d is None else f"{d.difference:+.1f} ±{d.ci95:.1f}"
            cells.append(f"[bold]{text}[/]" if d is not None and d.is_clear else text)
        table.add_row(f"{label} − {labels[0]}", *cells, "", style="cyan")
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
