"""The result of a test: every metric at each step, episode by episode, with all that decided it."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firststep.errors import FirststepError
from firststep.evaluation.measure import Measurement, half_width
from firststep.evaluation.metrics import METRICS, Metric
from firststep.utils import read_json, write_json, write_text

FORMAT = "firststep-evaluation-2"
FILE_FIELDS = ("label", "run", "settings", "provenance")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    label: str
    """What the model is, in a few words."""
    run: str
    settings: dict[str, Any]
    """What the episodes depend on: two evaluations with equal settings saw the same tasks."""
    measurement: Measurement
    auto_steps: np.ndarray | None = None
    """[tasks]: the number of steps chosen on each support set, where asked for."""
    auto_accuracy: np.ndarray | None = None
    """[tasks]: the accuracy with that number."""
    provenance: dict[str, Any]
    """Training configuration, meta-update and versions."""

    def rows(self) -> list[dict[str, Any]]:
        """A row for each step: accuracy and half-width in per cent, then the other metrics."""
        m = self.measurement
        columns: dict[str, np.ndarray] = {}
        for name, metric in m.metrics.items():
            factor = 100 if metric.percent else 1
            columns[name] = factor * m.mean(name)
            if metric.interval and not metric.log10:
                columns["ci95" if name == "accuracy" else f"{name}_ci95"] = factor * m.half_width(name)
        rows: list[dict[str, Any]] = [
            {"step": step, **{name: float(values[index]) for name, values in columns.items()}}
            for index, step in enumerate(m.steps)
        ]
        if self.auto_accuracy is not None:
            auto = {
                "accuracy": 100 * float(self.auto_accuracy.mean()),
                "ci95": 100 * float(half_width(self.auto_accuracy)),
            }
            rows.append({"step": "auto", **dict.fromkeys(columns), **auto})
        return rows

    def at(self, step: int) -> np.ndarray:
        """Per-episode accuracies after that many steps."""
        return self.measurement.accuracy[:, self.measurement.steps.index(step)]

    def save(self, path: Path) -> tuple[Path, Path]:
        """Write ``path``.json with every episode and ``path``.csv with the means."""
        path.parent.mkdir(parents=True, exist_ok=True)
        as_json, as_csv = path.with_name(f"{path.name}.json"), path.with_name(f"{path.name}.csv")
        rows = self.rows()
        m = self.measurement
        write_json(
            as_json,
            {
                "format": FORMAT,
                **{name: getattr(self, name) for name in FILE_FIELDS},
                "summary": rows,
                "steps": list(m.steps),
                "metrics": {
                    name: {
                        "title": metric.title,
                        "percent": metric.percent,
                        "log10": metric.log10,
                        "values": _rounded(m.values[name]),
                    }
                    for name, metric in m.metrics.items()
                },
                "auto_steps": None if self.auto_steps is None else self.auto_steps.tolist(),
                "auto_accuracy": None if self.auto_accuracy is None else _rounded(self.auto_accuracy),
            },
        )
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(as_csv, text.getvalue())
        return as_json, as_csv


def _rounded(values: np.ndarray) -> Any:
    """Six digits: one image more or less in an episode is far coarser."""
    return np.round(values, 6).tolist()


def load_evaluation(path: Path) -> Evaluation:
    """What :meth:`Evaluation.save` wrote, now or in the format before it."""
    content = read_json(path)
    try:
        current = content if "format" in content else _from_format_1(content)
        stored = current["metrics"]
        auto = current["auto_steps"] is not None
        return Evaluation(
            **{name: current[name] for name in FILE_FIELDS},
            measurement=Measurement(
                steps=tuple(current["steps"]),
                values={name: np.array(entry["values"]) for name, entry in stored.items()},
                metrics={name: _metric(name, entry) for name, entry in stored.items()},
            ),
            auto_steps=np.array(current["auto_steps"]) if auto else None,
            auto_accuracy=np.array(current["auto_accuracy"]) if auto else None,
        )
    except (KeyError, TypeError) as error:
        raise FirststepError(f"{path} is not an evaluation of firststep (it lacks {error})") from None


def _metric(name: str, entry: dict[str, Any]) -> Metric:
    """As registered, or as the file describes it: somebody else's metric can still be shown."""
    if name in METRICS:
        return METRICS[name]

    def unavailable(*_: object) -> Any:
        raise FirststepError(f"the metric {name} was read from a file and is not registered here")

    return Metric(title=entry["title"], compute=unavailable, percent=entry["percent"], log10=entry["log10"])


def _from_format_1(content: dict[str, Any]) -> dict[str, Any]:
    """Two metrics with keys of their own, and ``origin`` for what is ``provenance`` now."""
    values = {"accuracy": content["accuracy"], "condition_number": content["log10_condition_number"]}
    return {
        **content,
        "provenance": content["origin"],
        "metrics": {name: {"values": stored} for name, stored in values.items()},
    }
