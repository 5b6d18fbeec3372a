"""Runs beside each other: one table, and paired differences because they saw the same episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from firststep.errors import FirststepError
from firststep.evaluation.evaluate import Evaluation
from firststep.evaluation.measure import half_width

# What must agree for two evaluations to be about the same tasks. The length of steps may differ: that is
# something to compare.
SAME_TASKS = ("data_fingerprint", "split", "ways", "shots", "queries", "seed", "episodes")


@dataclass(frozen=True)
class PairedDifference:
    """Second minus first, in per cent points, over the same episodes."""

    step: int
    difference: float
    ci95: float

    @property
    def is_clear(self) -> bool:
        """Whether 0 lies outside the 95 % interval."""
        return abs(self.difference) > self.ci95


def paired_differences(first: Evaluation, second: Evaluation) -> list[PairedDifference]:
    """At every step that both were tested at."""
    for key in SAME_TASKS:
        if first.settings[key] != second.settings[key]:
            raise FirststepError(
                f"{first.run} and {second.run} were tested on different episodes ({key} "
                f"{first.settings[key]} and {second.settings[key]}): their differences are not paired"
            )
    shared = [step for step in first.measurement.steps if step in second.measurement.steps]
    result = []
    for step in shared:
        difference = 100 * (second.at(step) - first.at(step))
        result.append(PairedDifference(step, float(difference.mean()), float(half_width(difference))))
    return result


def distinct_labels(evaluations: list[Evaluation]) -> list[str]:
    """What the models are; where two are the same, the folders tell them apart."""
    labels = [evaluation.label for evaluation in evaluations]
    return [
        label if labels.count(label) == 1 else f"{label} ({evaluation.run})"
        for label, evaluation in zip(labels, evaluations, strict=True)
    ]


def table(evaluations: list[Evaluation]) -> pd.DataFrame:
    """Long form: a row for each model and step, with the paired difference to the first model."""
    rows: list[dict[str, Any]] = []
    for label, evaluation in zip(distinct_labels(evaluations), evaluations, strict=True):
        differences = (
            {}
            if evaluation is evaluations[0]
            else {d.step: d for d in paired_differences(evaluations[0], evaluation)}
        )
        for row in evaluation.rows():
            difference = differences.get(row["step"])
            rows.append(
                {
                    "model": label,
                    **row,
                    "difference": np.nan if difference is None else difference.difference,
                    "difference_ci95": np.nan if difference is None else difference.ci95,
                }
            )
    return pd.DataFrame(rows)


def markdown(evaluations: list[Evaluation]) -> str:
    """A row for each model, a column for each step; then the paired differences."""
    labels = distinct_labels(evaluations)
    steps = [row["step"] for row in evaluations[0].rows()]
    lines = [
        "| model | " + " | ".join(f"step {step}" for step in steps) + " | condition number |",
        "|---" * (len(steps) + 2) + "|",
    ]
    for label, evaluation in zip(labels, evaluations, strict=True):
        by_step = {row["step"]: row for row in evaluation.rows()}
        cells = [
            f"{by_step[step]['accuracy']:.2f} ± {by_step[step]['ci95']:.2f}" if step in by_step else "–"
            for step in steps
        ]
        lines.append(f"| {label} | " + " | ".join(cells) + f" | {initial_condition(evaluation)} |")
    for label, evaluation in zip(labels[1:], evaluations[1:], strict=True):
        by_paired = {d.step: d for d in paired_differences(evaluations[0], evaluation)}
        cells = [
            f"{by_paired[step].difference:+.2f} ± {by_paired[step].ci95:.2f}" if step in by_paired else "–"
            for step in steps
        ]
        lines.append(f"| {label} − {labels[0]} | " + " | ".join(cells) + " | |")
    return "\n".join(lines) + "\n"


def initial_condition(evaluation: Evaluation) -> str:
    """The condition number before the first step."""
    measurement = evaluation.measurement
    if 0 not in measurement.steps:
        return "–"
    return f"{measurement.condition_number()[measurement.steps.index(0)]:.3g}"
