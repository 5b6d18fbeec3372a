"""What was measured here, and what the paper prints, in two tidy frames: what tables and figures take.

All that is read from runs and evaluations is read here, once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from firststep.evaluation import Evaluation, load_evaluation, paired_differences
from firststep.paper.experiment import Row
from firststep.paper.over_seeds import logs_over_seeds, mean_over_seeds
from firststep.paper.parameter_count import parameter_count
from firststep.paper.plan import run_name
from firststep.training import Run, TrainConfig

CELL = ["row", "step", "rate_multiplier"]
"""What a number is about: a row of the table, the inner steps taken, and how many times the trained rate."""
WORDS = ("source", "row", "dataset", "backbone", "method", "subset", "loss", "over", "split", "quantity")
WHOLE = ("filters", "ways", "shots", "step", "update", "index", "seed", "seeds", "gain_seeds")
MODEL = ["row", "dataset", "backbone", "filters", "method", "subset", "loss", "ways", "shots"]
_MEASURED = [
    *(*MODEL, "step", "rate_multiplier", "accuracy", "ci95"),
    *("condition_number", "rank", "support_loss", "largest_share", "class_offset"),
    *("parameters", "over", "gain", "gain_ci95"),
]
BY_SEED = ["seed", *_MEASURED]
ACCURACIES = ["source", *_MEASURED, "seeds", "gain_seeds"]
HISTORIES = [*MODEL, "update", "split", "quantity", "index", "value", "low", "high"]
LOGGED = {"accuracy": 100.0, "condition_number": 1.0, "condition_number_all": 1.0}
"""Quantities of the training log, and the factor to the units of the frame."""


@dataclass(frozen=True)
class Training:
    """One training of a row, and what exists of it."""

    seed: int
    run: Run | None
    """None where the training has not begun."""
    evaluations: tuple[Evaluation, ...]
    """The results that exist of the row's tests."""


@dataclass(frozen=True)
class MeasuredRow:
    """A row of an experiment with what exists of it."""

    row: Row
    trainings: tuple[Training, ...]
    """One for each seed."""

    def with_seed(self, seed: int) -> Training | None:
        return next((training for training in self.trainings if training.seed == seed), None)


def read_row(row: Row, configs: Sequence[TrainConfig], runs: Path) -> MeasuredRow:
    """What exists of a row's trainings, whose configurations differ in the seed."""
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
    """Ours: a line for each row, seed, step and rate; intervals over the test episodes.

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
                        "rate_multiplier": evaluation.settings["rate_multiplier"],
                        "parameters": parameter_count(each.row.config),
                        **line,
                        **({"over": over[each.row.label], **gains[line["step"]]} if gains else {}),
                    }
                    for line in evaluation.rows()
                ]
    return tidy(lines, BY_SEED)


def accuracy_frame(
    by_seed: pd.DataFrame, paper: pd.DataFrame, over: dict[str, str], seeds: int
) -> pd.DataFrame:
    """A line for each source (ours, paper), row, step and rate.

    Args:
        by_seed: ours (:func:`seed_frame`).
        paper: what the paper prints (:func:`firststep.paper.experiment.published_cells`).
        over: label of a row → label of the row that its gain is taken over.
        seeds: how many trainings of each row were asked for.
    """
    ours = mean_over_seeds(by_seed, CELL, seeds).assign(source="ours")
    printed = _with_gains(paper.to_dict("records"), over)
    return tidy([*ours.to_dict("records"), *printed], ACCURACIES)


def _paired(base: Training, evaluation: Evaluation) -> dict[int, dict[str, Any]]:
    """Step → gain over the base's evaluation of the same test, episode by episode, in per cent points."""
    same = ("split", "rate_multiplier", "episodes")
    for first in base.evaluations:
        if all(first.settings[key] == evaluation.settings[key] for key in same) and (
            first.measurement.steps == evaluation.measurement.steps
        ):
            return {
                d.step: {"gain": d.difference, "gain_ci95": d.ci95}
                for d in paired_differences(first, evaluation)
            }
    return {}


def _with_gains(printed: list[dict[str, Any]], over: dict[str, str]) -> list[dict[str, Any]]:
    """The paper's numbers with differences of its means; half-widths of independent means add as squares."""
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
    """What the runs logged at each validation, in long form; accuracies in per cent, means over seeds."""
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
        for quantity, factor in LOGGED.items()
        for index, value in enumerate(logged.get(f"{split}_{quantity}", []))
    ]
    frame = tidy(lines, HISTORIES)
    several = any(len(each.trainings) > 1 for each in measured)
    return tidy(logs_over_seeds(frame, MODEL).to_dict("records"), HISTORIES) if several else frame


def tidy(lines: Iterable[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Words are text, empty where there is none; numbers are numbers, missing where there is none."""
    frame = pd.DataFrame(list(lines)).reindex(columns=list(columns))
    for column in columns:
        if column in WORDS:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "").astype(str)
        else:
            frame[column] = pd.to_numeric(frame[column]).astype("Int64" if column in WHOLE else float)
    return frame


def _model(row: Row) -> dict[str, Any]:
    config = row.config
    term = config.term
    method = config.method if config.head == "per-class" else f"{config.method}, {config.head} head"
    method = method if term is None else f"{method} + conditioning"
    return {
        "row": row.label,
        "dataset": config.data,
        "backbone": config.backbone,
        "filters": config.filters,
        "method": "conditioned" if method == "maml + conditioning" else method,
        "subset": "none" if term is None else term.subset,
        "loss": "none" if term is None else term.loss,
        "ways": config.ways,
        "shots": config.shots,
    }
