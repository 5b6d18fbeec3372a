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
from firststep.evaluation.stored import FORMAT, StoredMetric, read_stored
from firststep.utils import make_folder, write_json, write_text

FILE_FIELDS = ("label", "run", "settings", "provenance")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A test: every metric of every episode after every number of steps, with the settings that made it.

    Examples:
        >>> [row["step"] for row in evaluation.rows()], evaluation.at(1).shape
        ([0, 1, 2], (3,))
        >>> evaluation.settings["episodes"]
        3
    """

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
        """Write ``path``.json with every episode, to the last bit, and ``path``.csv with the means."""
        make_folder(path.parent)
        as_json, as_csv = path.with_name(f"{path.name}.json"), path.with_name(f"{path.name}.csv")
        rows = self.rows()
        m = self.measurement
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(as_csv, text.getvalue())
        # Last: where it is, both are.
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
                        "values": m.values[name].tolist(),
                    }
                    for name, metric in m.metrics.items()
                },
                "auto_steps": None if self.auto_steps is None else self.auto_steps.tolist(),
                "auto_accuracy": None if self.auto_accuracy is None else self.auto_accuracy.tolist(),
            },
        )
        return as_json, as_csv


def load_evaluation(path: Path) -> Evaluation:
    """What :meth:`Evaluation.save` wrote, now or in the format before it.

    Examples:
        >>> from firststep.evaluation import load_evaluation
        >>> _ = evaluation.save(Path("test"))
        >>> load_evaluation(Path("test.json")).rows() == evaluation.rows()
        True
    """
    stored = read_stored(path)
    metrics = stored.metrics
    return Evaluation(
        **{name: stored.content[name] for name in FILE_FIELDS},
        measurement=Measurement(
            steps=tuple(stored.steps),
            values={name: np.array(metric.values) for name, metric in metrics.items()},
            metrics={name: _metric(name, metric) for name, metric in metrics.items()},
        ),
        auto_steps=None if stored.auto_steps is None else np.array(stored.auto_steps),
        auto_accuracy=None if stored.auto_accuracy is None else np.array(stored.auto_accuracy),
    )


def _metric(name: str, stored: StoredMetric) -> Metric:
    """As registered, or as the file describes it: somebody else's metric can still be shown."""
    if name in METRICS:
        return METRICS[name]

    def unavailable(*_: object) -> Any:
        raise FirststepError(f"the metric {name} was read from a file and is not registered here")

    return Metric(title=stored.title or name, compute=unavailable, percent=stored.percent, log10=stored.log10)
