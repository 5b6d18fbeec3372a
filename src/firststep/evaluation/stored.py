"""The file of an evaluation: what it holds, checked when it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firststep.errors import FirststepError
from firststep.utils import check_format, read_json, to_record

FORMAT, OLD_FORMAT = "firststep-evaluation-2", "firststep-evaluation-1"


@dataclass(frozen=True, kw_only=True)
class StoredSettings:
    """What decides the tasks of an evaluation and how they are measured."""

    data: str
    data_fingerprint: str
    split: str
    ways: int
    shots: int
    queries: int
    seed: int
    episodes: int
    rate_multiplier: float
    subset: str


@dataclass(frozen=True, kw_only=True)
class StoredProvenance:
    """Of the model that was tested. Those of format 1 have no digest of their checkpoint."""

    config: dict[str, Any]
    update: int
    torch: str
    firststep: str | None
    checkpoint: str | None = None


@dataclass(frozen=True, kw_only=True)
class StoredMetric:
    values: list[list[float]]
    """A row for each episode, with a value for each number of steps."""
    title: str = ""
    percent: bool = False
    log10: bool = False


@dataclass(frozen=True, kw_only=True)
class StoredEvaluation:
    label: str
    run: str
    settings: StoredSettings
    provenance: StoredProvenance
    steps: list[int]
    metrics: dict[str, StoredMetric]
    auto_steps: list[int] | None = None
    auto_accuracy: list[float] | None = None
    content: dict[str, Any] = field(default_factory=dict)
    """The file as it is, with what later versions may have added to settings and provenance."""

    def __post_init__(self) -> None:
        """Ragged or mixed-up numbers would be averaged without a word."""
        episodes, stages = self.settings.episodes, len(self.steps)
        if not self.steps or self.steps != sorted(set(self.steps)) or self.steps[0] < 0:
            raise FirststepError(f"steps {self.steps} are not ascending numbers of steps")
        if "accuracy" not in self.metrics:
            raise FirststepError("metrics: accuracy is missing")
        for name, metric in self.metrics.items():
            if len(metric.values) != episodes or any(len(row) != stages for row in metric.values):
                raise FirststepError(
                    f"metrics.{name}.values are not {episodes} rows (episodes) of {stages} numbers (steps)"
                )
        if (self.auto_steps is None) != (self.auto_accuracy is None):
            raise FirststepError("auto_steps and auto_accuracy belong together")
        for chosen in (self.auto_steps, self.auto_accuracy):
            if chosen is not None and len(chosen) != episodes:
                raise FirststepError(f"auto_steps and auto_accuracy do not have {episodes} numbers")


def read_stored(path: Path) -> StoredEvaluation:
    """The file in the format of now or in the one before."""
    content = read_json(path)
    if check_format(content, str(path), FORMAT, OLD_FORMAT) == OLD_FORMAT:
        content = _from_format_1(content)
    return to_record({**content, "content": content}, StoredEvaluation, str(path))


def _from_format_1(content: dict[str, Any]) -> dict[str, Any]:
    """Two metrics with keys of their own, and ``origin`` for what is ``provenance`` now."""
    old = {"accuracy": "accuracy", "condition_number": "log10_condition_number"}
    return {
        **content,
        "provenance": content.get("origin"),
        "metrics": {name: {"values": content.get(key)} for name, key in old.items()},
    }
