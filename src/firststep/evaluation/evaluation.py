"""The result of a test: every metric per episode and step, and the settings that produced it."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from firststep.errors import FirststepError
from firststep.evaluation.measure import Measurement, half_width
from firststep.evaluation.metrics import MAIN, METRICS, Metric
from firststep.evaluation.settings import EvaluationSettings
from firststep.evaluation.stored import FORMAT, StoredMetric, read_stored
from firststep.losses import Kind
from firststep.utils import make_folder, write_json, write_text


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A test result: every metric per episode and number of steps, with its settings.

    Examples:
        >>> [row["step"] for row in evaluation.rows()], evaluation.at(1).shape
        ([0, 1, 2], (3,))
        >>> evaluation.settings.episodes
        3
    """

    label: str
    """Short description of the model."""
    run: str
    data: str
    """Name of the dataset."""
    data_fingerprint: str
    settings: EvaluationSettings
    """The tasks, and how they were measured; no field is None."""
    measurement: Measurement
    auto_steps: np.ndarray | None = None
    """Number of steps chosen on each support set [tasks]; None unless requested."""
    auto_accuracy: np.ndarray | None = None
    """Accuracy with that number of steps [tasks], or the main metric of another kind of problem."""
    provenance: dict[str, Any]
    """Training configuration, meta-update and versions."""
    kind: Kind = "classes"
    """Kind of problem."""

    @property
    def main(self) -> str:
        """Name of the metric that tables and comparisons show."""
        return MAIN[self.kind]

    @property
    def main_metric(self) -> Metric:
        """The main metric of the kind of problem."""
        return self.measurement.metrics[self.main]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per step: accuracy and half-width in per cent, then the other metrics.

        Other kinds of problem have their own metrics; ``ci95`` is the half-width of the main one.
        """
        m = self.measurement
        columns: dict[str, np.ndarray] = {}
        for name, metric in m.metrics.items():
            factor = 100 if metric.percent else 1
            columns[name] = factor * m.mean(name)
            if metric.interval and not metric.log10:
                columns["ci95" if name == self.main else f"{name}_ci95"] = factor * m.half_width(name)
        rows: list[dict[str, Any]] = [
            {"step": step, **{name: float(values[index]) for name, values in columns.items()}}
            for index, step in enumerate(m.steps)
        ]
        if self.auto_accuracy is not None:
            factor = 100 if self.main_metric.percent else 1
            auto = {
                self.main: factor * float(self.auto_accuracy.mean()),
                "ci95": factor * float(half_width(self.auto_accuracy)),
            }
            rows.append({"step": "auto", **dict.fromkeys(columns), **auto})
        return rows

    def at(self, step: int) -> np.ndarray:
        """Return the accuracy, or the main metric, per episode after ``step`` inner steps."""
        return self.measurement.values[self.main][:, self.measurement.steps.index(step)]

    def save(self, path: Path) -> tuple[Path, Path]:
        """Write ``path``.json with every episode, bit-exact, and ``path``.csv with the means."""
        make_folder(path.parent)
        as_json, as_csv = path.with_name(f"{path.name}.json"), path.with_name(f"{path.name}.csv")
        rows = self.rows()
        m = self.measurement
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(as_csv, text.getvalue())
        # Write the JSON last: if it exists, the CSV exists too.
        write_json(
            as_json,
            {
                "format": FORMAT,
                "label": self.label,
                "run": self.run,
                "settings": {
                    "data": self.data,
                    "data_fingerprint": self.data_fingerprint,
                    **self.settings.tasks(),
                },
                "provenance": self.provenance,
                **({} if self.kind == "classes" else {"kind": self.kind}),
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
    """Read the JSON file that :meth:`Evaluation.save` wrote.

    Examples:
        >>> from firststep.evaluation import load_evaluation
        >>> _ = evaluation.save(Path("test"))
        >>> load_evaluation(Path("test.json")).rows() == evaluation.rows()
        True
    """
    stored = read_stored(path)
    metrics = stored.metrics
    return Evaluation(
        label=stored.label,
        run=stored.run,
        data=stored.data,
        data_fingerprint=stored.data_fingerprint,
        settings=replace(stored.settings, steps=tuple(stored.steps), auto=stored.auto_steps is not None),
        provenance=stored.content["provenance"],
        measurement=Measurement(
            steps=tuple(stored.steps),
            values={name: np.array(metric.values) for name, metric in metrics.items()},
            metrics={name: _metric(name, metric) for name, metric in metrics.items()},
        ),
        auto_steps=None if stored.auto_steps is None else np.array(stored.auto_steps),
        auto_accuracy=None if stored.auto_accuracy is None else np.array(stored.auto_accuracy),
        kind=stored.kind,
    )


def _metric(name: str, stored: StoredMetric) -> Metric:
    """Return the registered metric, or one from the file's description if it is not registered here."""
    if name in METRICS:
        return METRICS[name]

    def unavailable(*_: object) -> Any:
        raise FirststepError(f"metric {name} was read from a file; import the module that registers it")

    return Metric(title=stored.title or name, compute=unavailable, percent=stored.percent, log10=stored.log10)
