"""Compare runs: tables, and differences that are paired because all runs saw the same episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from firststep.errors import FirststepError
from firststep.evaluation.evaluation import Evaluation
from firststep.evaluation.measure import half_width
from firststep.evaluation.metrics import Metric
from firststep.utils import MISSING, Cell, Table

if TYPE_CHECKING:
    import pandas as pd

# Settings that must be equal for two evaluations to be about the same tasks. The rate multiplier may differ:
# runs may be compared by it.
SAME_TASKS = ("split", "ways", "shots", "queries", "seed", "episodes")


@dataclass(frozen=True)
class PairedDifference:
    """Mean difference, second minus first, over the same episodes; in percentage points for accuracies.

    Examples:
        >>> from firststep.evaluation import PairedDifference
        >>> PairedDifference(step=1, difference=6.7, ci95=0.6).is_clear
        True
    """

    step: int
    difference: float
    ci95: float

    @property
    def is_clear(self) -> bool:
        """Whether 0 lies outside the 95 % interval."""
        return abs(self.difference) > self.ci95


def paired_differences(first: Evaluation, second: Evaluation) -> list[PairedDifference]:
    """Return the paired difference at every step that both evaluations have.

    Examples:
        >>> from firststep.evaluation import paired_differences
        >>> [difference.step for difference in paired_differences(evaluation, longer)]
        [0, 1, 2]
    """
    for key in ("data_fingerprint", *SAME_TASKS):
        one, other = (
            getattr(each if key == "data_fingerprint" else each.settings, key) for each in (first, second)
        )
        if one != other:
            raise FirststepError(
                f"{first.run} and {second.run} were tested on different episodes ({key} {one} and {other}): "
                "evaluate both with the same settings"
            )
    if first.kind != second.kind:
        raise FirststepError(
            f"{first.run} and {second.run} are of different kinds: {first.kind}, {second.kind}"
        )
    factor = 100 if first.main_metric.percent else 1
    shared = [step for step in first.measurement.steps if step in second.measurement.steps]
    result = []
    for step in shared:
        difference = factor * (second.at(step) - first.at(step))
        result.append(PairedDifference(step, float(difference.mean()), float(half_width(difference))))
    return result


def distinct_labels(evaluations: list[Evaluation]) -> list[str]:
    """Return a label per evaluation; the run's name is added where labels are equal."""
    labels = [evaluation.label for evaluation in evaluations]
    return [
        label if labels.count(label) == 1 else f"{label} ({evaluation.run})"
        for label, evaluation in zip(labels, evaluations, strict=True)
    ]


def comparison_frame(evaluations: list[Evaluation]) -> pd.DataFrame:
    """Return one row per model and step, with the paired difference to the first model.

    Examples:
        >>> from firststep.evaluation import comparison_frame
        >>> comparison_frame([evaluation, longer])[["step", "difference"]].shape
        (6, 2)
    """
    import pandas as pd  # imported here: slow, and used only here

    rows: list[dict[str, Any]] = []
    for label, evaluation, differences in _compared(evaluations):
        for row in evaluation.rows():
            d = differences.get(row["step"])
            found = {"difference": np.nan, "difference_ci95": np.nan}
            if d is not None:
                found = {"difference": d.difference, "difference_ci95": d.ci95}
            rows.append({"model": label, **row, **found})
    return pd.DataFrame(rows)


def describe_test(evaluation: Evaluation) -> str:
    """Return the test in words: ``glyphs test, 5-way 1-shot, 600 episodes``; no ways without classes."""
    settings = evaluation.settings
    form = (
        f"{settings.ways}-way {settings.shots}-shot"
        if evaluation.kind == "classes"
        else f"{settings.shots}-shot"
    )
    return f"{evaluation.data} {settings.split}, {form}, {settings.episodes} episodes"


def _cell(row: dict[str, Any] | None, evaluation: Evaluation, decimals: int) -> str:
    """Format the main metric of a row with its half-width: decimals of a percentage, else three digits."""
    if not row:
        return MISSING
    value, width = row[evaluation.main], row["ci95"]
    if evaluation.main_metric.percent:
        return f"{value:.{decimals}f} ± {width:.{decimals}f}"
    return f"{value:.3g} ± {width:.2g}"


def comparison_table(evaluations: list[Evaluation], decimals: int = 2) -> Table:
    """Return one row per model, one per difference to the first model, and one column per step.

    A difference is bold if its 95 % interval excludes zero.

    Examples:
        >>> from firststep.evaluation import comparison_table
        >>> comparison_table([evaluation, longer]).columns
        ['model', 'step 0', 'step 1', 'step 2', 'condition number', 'rank']
    """
    steps = [row["step"] for row in evaluations[0].rows()]
    table = Table(["model", *(f"step {step}" for step in steps), "condition number", "rank"])
    compared = _compared(evaluations)
    for label, evaluation, _ in compared:
        by_step = {row["step"]: row for row in evaluation.rows()}
        cells = [_cell(by_step.get(step), evaluation, decimals) for step in steps]
        table.add_row(label, *cells, initial_condition_number(evaluation), initial_rank(evaluation))
    for label, _, differences in compared[1:]:
        percent = evaluations[0].main_metric.percent
        paired = [_difference_cell(differences.get(step), decimals, percent) for step in steps]
        table.add_row(f"{label} − {compared[0][0]}", *paired)
    return table


def steps_table(evaluations: list[Evaluation], decimals: int = 1) -> Table:
    """Return the transposed comparison, one row per step and one column per model, to fit a terminal.

    Examples:
        >>> from firststep.evaluation import steps_table
        >>> len(steps_table([evaluation, longer]).rows)
        5
    """
    first = evaluations[0]
    metric = first.main_metric
    compared = _compared(evaluations)
    labels = [label for label, _, _ in compared]
    table = Table(
        ["steps", *labels, *(f"{label} − {labels[0]}" for label in labels[1:])],
        title=f"{describe_test(first)}: {metric.title}{' in %' if metric.percent else ''} with "
        "95 % half-width",
        left_aligned=0,
    )
    by_step = [{row["step"]: row for row in evaluation.rows()} for evaluation in evaluations]
    for step in by_step[0]:
        cells = [
            _cell(rows.get(step), evaluation, decimals)
            for rows, evaluation in zip(by_step, evaluations, strict=True)
        ]
        paired = [
            _difference_cell(differences.get(step), decimals, metric.percent)
            for _, _, differences in compared[1:]
        ]
        table.add_row(str(step), *cells, *paired)
    table.add_section()
    table.add_row("condition number", *map(initial_condition_number, evaluations))
    table.add_row("rank", *map(initial_rank, evaluations))
    return table


def metrics_table(evaluation: Evaluation) -> Table:
    """Return every metric of one model, one row per step.

    Examples:
        >>> from firststep.evaluation import metrics_table
        >>> metrics_table(evaluation).columns[:4]
        ['steps', 'accuracy %', '95 % half-width', 'condition number']
    """
    metrics = evaluation.measurement.metrics
    rows = evaluation.rows()
    titles = {
        "step": "steps",
        "ci95": "95 % half-width",
        **{name: f"{m.title} %" if m.percent else m.title for name, m in metrics.items()},
        **{f"{name}_ci95": "95 % half-width" for name in metrics},
    }
    table = Table([titles[name] for name in rows[0]], left_aligned=0)
    for row in rows:
        table.add_row(*(_number(name, value, metrics, evaluation.main) for name, value in row.items()))
    return table


def initial_condition_number(evaluation: Evaluation) -> str:
    """Format the condition number before the first step."""
    return _before_the_first_step(evaluation, "condition_number")


def initial_rank(evaluation: Evaluation) -> str:
    """Format the rank before the first step; a stored evaluation may lack this metric."""
    return _before_the_first_step(evaluation, "rank")


def _before_the_first_step(evaluation: Evaluation, metric: str) -> str:
    measurement = evaluation.measurement
    if 0 not in measurement.steps or metric not in measurement.values:
        return MISSING
    return f"{measurement.mean(metric)[measurement.steps.index(0)]:.3g}"


def _compared(
    evaluations: list[Evaluation],
) -> list[tuple[str, Evaluation, dict[int, PairedDifference]]]:
    """Return (label, evaluation, {step: difference to the first evaluation}) for each evaluation."""
    first = evaluations[0]
    return [
        (label, each, {} if each is first else {d.step: d for d in paired_differences(first, each)})
        for label, each in zip(distinct_labels(evaluations), evaluations, strict=True)
    ]


def _difference_cell(d: PairedDifference | None, decimals: int, percent: bool) -> Cell:
    if d is None:
        return Cell(MISSING)
    if not percent:
        return Cell(f"{d.difference:+.2g} ± {d.ci95:.2g}", bold=d.is_clear)
    return Cell(f"{d.difference:+.{decimals}f} ± {d.ci95:.{decimals}f}", bold=d.is_clear)


def _number(name: str, value: Any, metrics: dict[str, Metric], main: str) -> str:
    if value is None:
        return ""
    if name == "step":
        return str(value)
    metric = metrics[name.removesuffix("_ci95") if name != "ci95" else main]
    return f"{value:.2f}" if metric.percent else f"{value:.4g}"
