"""Measured numbers and the paper's, as two tidy frames from which tables and figures are made.

This is the only module that reads runs and evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from firststep.evaluation import Evaluation, load_evaluation, metrics_of, paired_differences
from firststep.paper.experiment import Row
from firststep.paper.over_seeds import logs_over_seeds, mean_over_seeds
from firststep.paper.parameter_count import parameter_count
from firststep.paper.plan import run_name
from firststep.training import Run, TrainConfig

CELL = ["row", "step", "rate_multiplier"]
"""Key of a number: row of the table, number of inner steps, and multiple of the trained rate."""
WORDS = (
    *("source", "row", "dataset", "backbone", "method", "subset", "loss", "over", "split", "quantity"),
    *("gain_over", "paper_dataset"),
)
WHOLE = ("filters", "ways", "shots", "step", "update", "index", "seed", "seeds", "gain_seeds")
MODEL = ["row", "dataset", "backbone", "filters", "method", "subset", "loss", "ways", "shots"]
HISTORIES = [*MODEL, "update", "split", "quantity", "index", "value", "low", "high"]


def metric_columns() -> list[str]:
    """Return the columns of the registered metrics beside accuracy, with half-widths where they have some."""
    return [
        column
        for name, metric in metrics_of("classes").items()
        if name != "accuracy"
        for column in ([name, f"{name}_ci95"] if metric.interval and not metric.log10 else [name])
    ]


def _measured() -> list[str]:
    return [
        *(*MODEL, "step", "rate_multiplier", "accuracy", "ci95"),
        *metric_columns(),
        *("parameters", "over", "gain", "gain_ci95"),
    ]


def seed_columns() -> list[str]:
    """Return the columns of :func:`seed_frame`."""
    return ["seed", *_measured()]


def accuracy_columns() -> list[str]:
    """Return the columns of :func:`accuracy_frame`."""
    return ["source", *_measured(), "seeds", "gain_seeds"]


def _logged() -> dict[str, float]:
    """Return the quantities of the training log → the factor to the units of the frame."""
    factors = {name: 100.0 if metric.percent else 1.0 for name, metric in metrics_of("classes").items()}
    return factors | {"condition_number_all": 1.0}


@dataclass(frozen=True)
class Training:
    """A training of a row, and its results so far."""

    seed: int
    run: Run | None
    """None if the training has not begun."""
    evaluations: tuple[Evaluation, ...]
    """Finished tests of the row."""


@dataclass(frozen=True)
class MeasuredRow:
    """A row of an experiment with its trainings."""

    row: Row
    trainings: tuple[Training, ...]
    """One per seed."""

    def with_seed(self, seed: int) -> Training | None:
        """Return the training of this seed, if the row has it."""
        return next((training for training in self.trainings if training.seed == seed), None)


def read_row(row: Row, configs: Sequence[TrainConfig], runs: Path) -> MeasuredRow:
    """Read the trainings of a row, whose configurations differ in the seed."""
    return MeasuredRow(row, tuple(_read_training(row, config, runs) for config in configs))


def _read_training(row: Row, config: TrainConfig, runs: Path) -> Training:
    run = Run(runs / run_name(config))
    files = [path.with_name(f"{path.name}.json") for path in (test.path(run.folder) for test in row.tests)]
    return Training(
        config.seed,
        run if run.record_path.is_file() else None,
        tuple(load_evaluation(file) for file in files if file.is_file()),
    )


def seed_frame(measured: Sequence[MeasuredRow], over: dict[str, str]) -> pd.DataFrame:
    """Return our numbers: a line per row, seed, step and rate, with intervals over the test episodes.

    Args:
        measured: the rows as they were run here.
        over: label of a row → label of the row that its gain is taken over, training by training.
    """
    by_label = {each.row.label: each for each in measured}
    lines = []
    for each in measured:
        base = by_label.get(over.get(each.row.label, ""))
        for training in each.trainings:
            first = None if base is None else base.with_seed(training.seed)
            for evaluation in training.evaluations:
                gains = {} if first is None else _paired(first, evaluation)
                lines += [
                    {
                        "seed": training.seed,
                        **_model(each.row),
                        "rate_multiplier": evaluation.settings.rate_multiplier,
                        "parameters": parameter_count(each.row.config),
                        **line,
                        **({"over": over[each.row.label], **gains[line["step"]]} if gains else {}),
                    }
                    for line in evaluation.rows()
                ]
    return tidy(lines, seed_columns())


def accuracy_frame(
    by_seed: pd.DataFrame, paper: pd.DataFrame, over: dict[str, str], seeds: int
) -> pd.DataFrame:
    """Return a line per source (ours, paper), row, step and rate.

    Args:
        by_seed: our numbers (:func:`seed_frame`).
        paper: the paper's numbers (:func:`firststep.paper.experiment.published_cells`).
        over: label of a row → label of the row that its gain is taken over.
        seeds: number of trainings per row that were asked for.
    """
    ours = mean_over_seeds(by_seed, CELL, seeds).assign(source="ours")
    printed = _with_gains(paper.to_dict("records"), over)
    return tidy([*ours.to_dict("records"), *printed], accuracy_columns())


def _paired(base: Training, evaluation: Evaluation) -> dict[int, dict[str, Any]]:
    """Return step → gain over the base's evaluation of the same test, paired by episode, in points."""
    same = ("split", "rate_multiplier", "episodes")
    for first in base.evaluations:
        if all(getattr(first.settings, key) == getattr(evaluation.settings, key) for key in same) and (
            first.measurement.steps == evaluation.measurement.steps
        ):
            return {
                d.step: {"gain": d.difference, "gain_ci95": d.ci95}
                for d in paired_differences(first, evaluation)
            }
    return {}


def _with_gains(printed: list[dict[str, Any]], over: dict[str, str]) -> list[dict[str, Any]]:
    """Add the gains: differences of printed means, whose half-widths add as squares."""
    cells = {tuple(cell[key] for key in CELL): cell for cell in printed}
    lines = []
    for cell in printed:
        base = over.get(cell["row"])
        first = cells.get((base, cell["step"], cell["rate_multiplier"]))
        gain = {}
        if first is not None:
            gain = {
                "over": base,
                "gain": cell["accuracy"] - first["accuracy"],
                "gain_ci95": math.hypot(cell["ci95"], first["ci95"]),
            }
        lines.append({"source": "paper", **cell, **gain})
    return lines


def history_frame(measured: Sequence[MeasuredRow]) -> pd.DataFrame:
    """Return what the runs logged at each validation: long form, per cent, means over seeds."""
    lines = [
        {
            **_model(each.row),
            "update": logged["update"],
            "split": split,
            "quantity": quantity,
            "index": index,
            "value": factor * value,
        }
        for each in measured
        for training in each.trainings
        if training.run is not None
        for logged in training.run.metrics()
        for split in ("train", "validation")
        for quantity, factor in _logged().items()
        for index, value in enumerate(logged.get(f"{split}_{quantity}", []))
    ]
    frame = tidy(lines, HISTORIES)
    several = any(len(each.trainings) > 1 for each in measured)
    return tidy(logs_over_seeds(frame, MODEL).to_dict("records"), HISTORIES) if several else frame


def tidy(lines: Iterable[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Return a frame with these columns: text is empty and numbers are missing where a line has none."""
    frame = pd.DataFrame(list(lines)).reindex(columns=list(columns))
    for column in columns:
        if column in WORDS:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "").astype(str)
        else:
            frame[column] = pd.to_numeric(frame[column]).astype("Int64" if column in WHOLE else float)
    return frame


def _model(row: Row) -> dict[str, Any]:
    config = row.config
    loss = config.conditioning_loss
    method = config.method_label if loss is None else f"{config.method_label} + conditioning"
    return {
        "row": row.label,
        "dataset": config.data,
        "backbone": config.backbone,
        "filters": config.filters,
        "method": "conditioned" if method == "maml + conditioning" else method,
        "subset": "none" if loss is None else loss.subset,
        "loss": "none" if loss is None else loss.loss,
        "ways": config.ways,
        "shots": config.shots,
    }
