"""What was measured here and what the paper prints, as tidy frames: what tables and figures take."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from firststep.backbones import build_backbone
from firststep.data.registry import entry
from firststep.errors import FirststepError
from firststep.evaluation.comparison import paired_differences
from firststep.evaluation.evaluate import Evaluation, load_evaluation
from firststep.paper.experiment import Row
from firststep.paper.plan import run_name
from firststep.rules import build_method, count_parameters
from firststep.training import Run, TrainConfig

MODEL = ["row", "dataset", "backbone", "filters", "method", "subset", "loss", "ways", "shots"]
ACCURACIES = [
    *("source", *MODEL, "step", "rate_multiplier"),
    *("accuracy", "ci95", "condition_number", "parameters"),
]
HISTORIES = [*MODEL, "update", "split", "quantity", "index", "value"]
GAINS = ["row", "over", "step", "rate_multiplier", "gain", "ci95"]
LOGGED = {
    "accuracy": ("accuracy", 100.0),
    "condition_number": ("condition_number", 1.0),
    "condition_number_all": ("condition_number_all", 1.0),
}


def evaluations(row: Row, runs: Path) -> list[Evaluation]:
    """The results that exist of a row's tests."""
    folder = runs / run_name(row.config)
    paths = [test.path(folder) for test in row.tests]
    return [
        load_evaluation(file) for path in paths if (file := path.with_name(f"{path.name}.json")).is_file()
    ]


def accuracies(rows: Sequence[Row], runs: Path, paper: pd.DataFrame) -> pd.DataFrame:
    """Ours, a line for each row, step and rate that was tested, and then the paper's."""
    ours = [
        {
            "source": "ours",
            **_model(row),
            "rate_multiplier": float(evaluation.settings["rate_multiplier"]),
            "parameters": parameters(row.config),
            **line,
        }
        for row in rows
        for evaluation in evaluations(row, runs)
        for line in evaluation.rows()
    ]
    frames = [frame for frame in (pd.DataFrame(ours), paper) if len(frame)]
    if not frames:
        return pd.DataFrame(columns=ACCURACIES)
    return pd.concat([f.reindex(columns=ACCURACIES).astype(object) for f in frames], ignore_index=True)


def gains(rows: Sequence[Row], runs: Path) -> pd.DataFrame:
    """Paired differences to the row that each is compared with, in per cent points."""
    by_label = {row.label: row for row in rows}
    found: list[dict[str, Any]] = []
    for row in rows:
        if row.over not in by_label:
            continue
        for first in evaluations(by_label[row.over], runs):
            for second in evaluations(row, runs):
                if not _same_test(first, second):
                    continue
                found += [
                    {
                        "row": row.label,
                        "over": row.over,
                        "step": d.step,
                        "rate_multiplier": float(second.settings["rate_multiplier"]),
                        "gain": d.difference,
                        "ci95": d.ci95,
                    }
                    for d in paired_differences(first, second)
                ]
    return pd.DataFrame(found, columns=GAINS)


def _same_test(first: Evaluation, second: Evaluation) -> bool:
    keys = ("split", "rate_multiplier", "episodes")
    same = all(first.settings[key] == second.settings[key] for key in keys)
    return same and first.measurement.steps == second.measurement.steps


def histories(rows: Sequence[Row], runs: Path) -> pd.DataFrame:
    """What the runs logged at each validation, in long form; accuracies in per cent."""
    lines: list[dict[str, Any]] = []
    for row in rows:
        facts = _model(row)
        for logged in Run(runs / run_name(row.config)).metrics():
            for split in ("train", "validation"):
                for key, (quantity, factor) in LOGGED.items():
                    lines += [
                        {
                            **facts,
                            "update": logged["update"],
                            "split": split,
                            "quantity": quantity,
                            "index": index,
                            "value": factor * value,
                        }
                        for index, value in enumerate(logged.get(f"{split}_{key}", []))
                    ]
    return pd.DataFrame(lines, columns=HISTORIES)


def _model(row: Row) -> dict[str, Any]:
    config = row.config
    term = config.term
    method = config.method if term is None else f"{config.method} + conditioning"
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


def parameters(config: TrainConfig) -> float:
    """All that a run learns; NaN where the method is not defined for the network."""
    size = config.image_size or entry(config.data).image_size
    channels = entry(config.data).channels
    return _parameters(
        config.backbone, config.ways, size, channels, config.filters, config.method, config.steps
    )


@cache
def _parameters(
    backbone: str, ways: int, size: int, channels: int, filters: int | None, method: str, steps: int
) -> float:
    try:
        module = build_backbone(backbone, ways=ways, image_size=size, channels=channels, filters=filters)
        return float(count_parameters(build_method(method, steps=steps), module).total)
    except (ValueError, FirststepError):
        return float("nan")
