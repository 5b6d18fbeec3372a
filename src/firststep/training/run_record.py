"""``run.json``: what a run is and with what it was made, and ``metrics.jsonl``: what it logged."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from firststep.data import Preprocessing
from firststep.errors import FirststepError
from firststep.training.config import TrainConfig
from firststep.utils import check_format, parse_json, read_bytes, read_json, to_record, write_json

FORMAT, OLD_FORMAT = "firststep-run-2", "firststep-run-1"  # format 1 did not say so; all else is the same

Entry = dict[str, Any]
"""A line of the metrics: ``update``, and numbers or a number for each inner step."""
ALWAYS_LOGGED = ("update", "query_loss", "validation_accuracy", "validation_half_width")


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Written when a run begins; its configuration changes when it is resumed with more updates.

    Examples:
        >>> run.record.data_fingerprint == dataset.fingerprint, run.record.config == run.config
        (True, True)
    """

    config: TrainConfig
    data_fingerprint: str
    preprocessing: Preprocessing
    init_digest: str | None = None
    """Of the weights that it started from, where the configuration names some."""
    firststep: str | None = None
    """Version of the package."""
    commit: str | None = None
    torch: str
    python: str
    machine: str

    def save(self, path: Path) -> None:
        content = {
            "format": FORMAT,
            **asdict(self),
            "config": self.config.to_json(),
            "preprocessing": self.preprocessing.describe(),
        }
        write_json(path, content)


def read_run_record(path: Path) -> RunRecord:
    content = read_json(path)
    check_format(content, str(path), FORMAT, OLD_FORMAT)
    TrainConfig.refuse_unknown_fields(content.get("config"), str(path))
    return to_record(content, RunRecord, str(path))


def read_metrics(path: Path, tolerant: bool = False) -> list[Entry]:
    """The logged lines, in order; ``tolerant`` leaves out lines that cannot be read, as after a kill."""
    entries = []
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        try:
            entries.append(_entry(line, f"{path}, line {number}"))
        except FirststepError:
            if not tolerant:
                raise
    return entries


def _entry(line: bytes, where: str) -> Entry:
    entry = parse_json(line, where)
    to_record(entry, dict[str, int | float | list[float] | None], where)
    for field in ALWAYS_LOGGED:
        if field not in entry:
            raise FirststepError(f"{where}: {field} is missing")
    for field, value in entry.items():
        per_step = field.startswith(("train_", "validation_"))
        if per_step and not (isinstance(value, list) and value):
            raise FirststepError(f"{where}: {field}: expected a number for each step, got {value!r}")
        if field == "update" and type(value) is not int:
            raise FirststepError(f"{where}: update: expected int, got {value!r}")
    if len(entry["validation_accuracy"]) < 2:
        raise FirststepError(f"{where}: validation_accuracy has no number after a step")
    checked: Entry = entry
    return checked
