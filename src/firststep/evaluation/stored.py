"""The file format of an evaluation, checked when a file is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firststep.errors import FirststepError
from firststep.evaluation.metrics import MAIN
from firststep.evaluation.settings import EvaluationSettings
from firststep.losses import Kind
from firststep.utils import check_format, read_json, to_record

FORMAT = "firststep-evaluation-2"
DATA = ("data", "data_fingerprint")
"""Fields that a file has among the settings."""


@dataclass(frozen=True, kw_only=True)
class StoredProvenance:
    """Origin of the model that was tested."""

    config: dict[str, Any]
    update: int
    torch: str
    firststep: str | None
    checkpoint: str
    """Digest of the checkpoint."""


@dataclass(frozen=True, kw_only=True)
class StoredMetric:
    values: list[list[float]]
    """One row per episode, one value per number of steps."""
    title: str = ""
    percent: bool = False
    log10: bool = False


@dataclass(frozen=True, kw_only=True)
class StoredEvaluation:
    label: str
    run: str
    data: str
    data_fingerprint: str
    settings: EvaluationSettings
    provenance: StoredProvenance
    steps: list[int]
    metrics: dict[str, StoredMetric]
    auto_steps: list[int] | None = None
    auto_accuracy: list[float] | None = None
    kind: Kind = "classes"
    content: dict[str, Any] = field(default_factory=dict)
    """The whole file, including fields that later versions may have added to settings and provenance."""

    def __post_init__(self) -> None:
        """Refuse ragged or inconsistent arrays, which would otherwise be averaged silently."""
        episodes, stages = self.settings.episodes, len(self.steps)
        if not self.steps or self.steps != sorted(set(self.steps)) or self.steps[0] < 0:
            raise FirststepError(f"steps: expected ascending numbers of at least 0, got {self.steps}")
        if MAIN[self.kind] not in self.metrics:
            raise FirststepError(f"metrics: {MAIN[self.kind]} is missing")
        for name, metric in self.metrics.items():
            if len(metric.values) != episodes or any(len(row) != stages for row in metric.values):
                raise FirststepError(
                    f"metrics.{name}.values: expected {episodes} rows (episodes) of {stages} numbers (steps)"
                )
        if (self.auto_steps is None) != (self.auto_accuracy is None):
            raise FirststepError("auto_steps and auto_accuracy: expected both or neither")
        for chosen in (self.auto_steps, self.auto_accuracy):
            if chosen is not None and len(chosen) != episodes:
                raise FirststepError(f"auto_steps and auto_accuracy: expected {episodes} numbers each")


def read_stored(path: Path) -> StoredEvaluation:
    """Read and check the file of an evaluation."""
    content = read_json(path)
    check_format(content, str(path), FORMAT)
    settings, data = content.get("settings"), {}
    if isinstance(settings, dict):
        for name in (*DATA, *EvaluationSettings().tasks()):
            if settings.get(name) is None:
                raise FirststepError(f"{path}: settings: {name} is missing")
        data = {name: settings[name] for name in DATA}
    return to_record({**content, **data, "content": content}, StoredEvaluation, str(path))
