"""What was measured here, and what the paper prints, in two tidy frames: what tables and figures take.

All that is read from runs and evaluations is read here, once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from firststep.backbones import build_backbone
from firststep.data import get_dataset_info
from firststep.errors import FirststepError
from firststep.evaluation import Evaluation, load_evaluation, paired_differences
from firststep.methods import build_method, count_parameters
from firststep.paper.experiment import Row
from firststep.paper.plan import run_name
from firststep.training import Run, TrainConfig

CELL = ["row", "step", "rate_multiplier"]
"""What a number is about: a row of the table, the inner steps taken, and how many times the trained rate."""
WORDS = ("source", "row", "dataset", "backbone", "method", "subset", "loss", "over", "split", "quantity")
WHOLE = ("filters", "ways", "shots", "step", "update", "index")
MODEL = ["row", "dataset", "backbone", "filters", "method", "subset", "loss", "ways", "shots"]
ACCURACIES = [
    *("source", *MODEL, "step", "rate_multiplier"),
    *("accuracy", "ci95", "condition_number", "parameters", "over", "gain", "gain_ci95"),
]
HISTORIES = [*MODEL, "update", "split", "quantity", "index", "value"]
LOGGED = {"accuracy": 100.0, "condition_number": 1.0, "condition_number_all": 1.0}
"""Quantities of the training log, and the factor to the units of the frame."""


@dataclass(frozen=True)
class MeasuredRow:
    """A row of an experiment with what exists of it."""

    row: Row
    run: Run | None
    """None where the training has not begun."""
    evaluations: tuple[Evaluation, ...]
    """The results that exist of the row's tests."""


def read_row(row: Row, runs: Path) -> MeasuredRow:
    run = Run(runs / run_name(row.config))
    files = [path.with_name(f"{path.name}.json") for path in (test.path(run.folder) for test in row.tests)]
    return MeasuredRow(
        row,
        run if run.record_path.is_file() else None,
        tuple(load_evaluation(file) for file in files if file.is_file()),
    )


def accuracy_frame(
    measured: Sequence[MeasuredRow], paper: pd.DataFrame, over: dict[str, str]
) -> pd.DataFrame:
    """A line for each source (ours, paper), row, step and rate.

    Args:
        measured: the rows as they were run here.
        paper: what the paper prints (:func:`firststep.paper.experiment.published_cells`).
        over: label of a row → label of the row that its gain is taken over.
    """
    by_label = {each.row.label: each for each in measured}
    ours = []
    for each in measured:
        base = by_label.get(over.get(each.row.label, ""))
        for evaluation in each.evaluations:
            gains = {} if base is None else _paired(base, evaluation)
            ours += [
                {
                    "source": "ours",
                    **_model(each.row),
                    "rate_multiplier": evaluation.settings["rate_multiplier"],
                    "parameters": parameter_count(each.row.config),
                    **line,
                    **gains.get(line["step"], {}),
                }
                for line in evaluation.rows()
            ]
    return tidy([*ours, *_with_gains(paper.to_dict("records"), over)], ACCURACIES)


def _paired(base: MeasuredRow, evaluation: Evaluation) -> dict[int, dict[str, Any]]:
    """Step → gain over the base's evaluation of the same test, episode by episode, in per cent points."""
    same = ("split", "rate_multiplier", "episodes")
    for first in base.evaluations:
        if all(first.settings[key] == evaluation.settings[key] for key in same) and (
            first.measurement.steps == evaluation.measurement.steps
        ):
            return {
                d.step: {"over": base.row.label, "gain": d.difference, "gain_ci95": d.ci95}
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
    """What the runs logged at each validation, in long form; accuracies in per cent."""
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
        if each.run is not None
        for logged in each.run.metrics()
        for split in ("train", "validation")
        for quantity, factor in LOGGED.items()
        for index, value in enumerate(logged.get(f"{split}_{quantity}", []))
    ]
    return tidy(lines, HISTORIES)


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


def parameter_count(config: TrainConfig) -> float:
    """All that a run learns; NaN where the method is not defined for the network."""
    size = config.image_size or get_dataset_info(config.data).image_size
    channels = get_dataset_info(config.data).channels
    return _count(
        config.backbone,
        config.ways,
        size,
        channels,
        config.filters,
        config.method,
        config.steps,
        config.head,
    )


@cache
def _count(
    backbone: str,
    ways: int,
    size: int,
    channels: int,
    filters: int | None,
    method: str,
    steps: int,
    head: str,
) -> float:
    try:
        module = build_backbone(backbone, ways=ways, image_size=size, channels=channels, filters=filters)
        return float(count_parameters(build_method(method, steps=steps), module, head).total)
    except (ValueError, FirststepError):
        return float("nan")
