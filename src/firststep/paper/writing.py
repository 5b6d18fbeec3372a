"""A result as files: Markdown, CSV and JSON, each with how it was made."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from firststep.errors import FirststepError
from firststep.paper.figures import FIGURES, save
from firststep.paper.result import Result
from firststep.paper.table import LEGEND, Table
from firststep.utils.files import write_json, write_text

FORMAT = "firststep-paper-result-1"


def write_result(result: Result, out: Path) -> list[Path]:
    """Write the result's files into the folder ``out``, its figure included; gives their paths."""
    make_folder(out)
    paths = [out / f"{result.stem}.{ending}" for ending in ("md", "csv", "json")]
    write_text(paths[0], markdown(result))
    write_text(paths[1], csv(result))
    write_json(paths[2], as_json(result))
    if (figure := draw(result)) is not None:
        about = "; ".join(f"{name}: {text}" for name, text in result.facts.items())
        paths += save(figure, out / result.stem, about)
    return paths


def draw(result: Result) -> Figure | None:
    """The experiment's figure from what exists; it says its scale and what is missing."""
    if result.experiment.figure is None:
        return None
    paint = FIGURES[result.experiment.figure]
    scale = result.setting.scale.describe()
    return paint(result.accuracies, result.histories, scale, result.setting.replaced(result.experiment))


def make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FirststepError(f"cannot make the folder {out}: {error.strerror}") from None


def markdown(result: Result) -> str:
    experiment = result.experiment
    lines = [
        f"# {experiment.title}",
        "",
        f"{LEGEND} {experiment.note}".strip(),
        "",
        markdown_table(result.table),
    ]
    if experiment.figure is not None:
        lines += [f"![{experiment.title}]({result.stem}.png)", ""]
    lines += ["How it was made:", "", *(f"- {name}: {text}" for name, text in result.facts.items())]
    return "\n".join(lines) + "\n"


def markdown_table(table: Table) -> str:
    rows = [table.columns, *table.lines]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" * len(table.columns) + "|")
    return "\n".join(lines) + "\n"


def csv(result: Result) -> str:
    """Long form, after lines that start with ``#`` and say how it was made (``read_csv(comment="#")``)."""
    head = "".join(f"# {name}: {text}\n" for name, text in result.facts.items())
    return head + combined(result).to_csv(index=False, lineterminator="\n")


def combined(result: Result) -> pd.DataFrame:
    """A line for each row, step and rate: ours, the paper's, the difference and the gain."""
    key = ["row", "step", "rate_multiplier"]
    a = result.accuracies
    ours = a[a["source"] == "ours"].drop(columns=["source"])
    paper = a[a["source"] == "paper"][[*key, "dataset", "accuracy", "ci95"]]
    paper = paper.set_axis([*key, "paper_dataset", "paper_accuracy", "paper_ci95"], axis=1)
    gains = result.gains.rename(columns={"over": "gain_over", "ci95": "gain_ci95"})
    for frame in (ours, paper, gains):
        for column in key[1:]:
            frame[column] = frame[column].astype(float)
    joined = ours.merge(paper, on=key, how="outer", sort=False).merge(gains, on=key, how="left")
    joined["difference"] = joined["accuracy"].astype(float) - joined["paper_accuracy"].astype(float)
    for column in ("accuracy", "ci95", "condition_number", "gain", "gain_ci95", "difference"):
        joined[column] = joined[column].astype(float).round(4)
    joined["step"] = joined["step"].astype(int)
    places = {row: place for place, row in enumerate(a["row"].unique())}
    order = joined["row"].map(places)
    return joined.assign(_=order).sort_values(["_", *key[1:]]).drop(columns="_").reset_index(drop=True)


def as_json(result: Result) -> dict[str, Any]:
    """What ``firststep paper report`` puts together."""
    return {
        "format": FORMAT,
        "experiment": result.experiment.name,
        "title": result.experiment.title,
        "note": result.experiment.note,
        "exists": result.exists,
        "figure": result.experiment.figure,
        "facts": result.facts,
        "table": {"columns": result.table.columns, "lines": result.table.lines},
        "cells": [_plain(record) for record in combined(result).to_dict("records")],
    }


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """NaN is not JSON."""
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in record.items()}


def read_results(out: Path) -> list[dict[str, Any]]:
    """Every result in a folder, in the order of the file names."""
    found = []
    for path in sorted(out.glob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FirststepError(f"cannot read {path}: {error}") from None
        if isinstance(content, dict) and content.get("format") == FORMAT:
            found.append({**content, "stem": path.stem})
    return found
