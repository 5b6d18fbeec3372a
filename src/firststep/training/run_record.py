"""``run.json``: configuration, data and versions of a run; ``metrics.jsonl``: its logged metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from firststep.errors import FirststepError
from firststep.evaluation._internal import MAIN
from firststep.training.config import TrainConfig
from firststep.training.run_folder import Record
from firststep.utils import check_format, parse_json, read_bytes, read_json, to_record

FORMAT, OLD_FORMAT = "firststep-run-2", "firststep-run-1"  # format 1 did not say so; all else is the same

Entry = dict[str, Any]
"""A line of the metrics: ``update``, scalars, and lists with one number per inner step."""
ALWAYS_LOGGED = ("update", "query_loss", "validation_half_width")


@dataclass(frozen=True, kw_only=True)
class RunRecord(Record):
    """Written when a run begins; its configuration changes when it is resumed with more updates.

    Examples:
        >>> run.record.data_fingerprint == dataset.fingerprint, run.record.config == run.config
        (True, True)
    """

    FORMAT: ClassVar[str] = FORMAT

    config: TrainConfig
    init_digest: str | None = None
    """Digest of the weights that the run started from, where the configuration names some."""


def read_run_record(path: Path) -> RunRecord:
    content = read_json(path)
    check_format(content, str(path), FORMAT, OLD_FORMAT)
    TrainConfig.refuse_unknown_fields(content.get("config"), str(path))
    record = to_record(content, RunRecord, str(path))
    if record.preprocessing is None and record.config.tasks is None:
        raise FirststepError(f"{path}: preprocessing: expected object, got null")
    return record


def read_metrics(path: Path, tolerant: bool = False) -> list[Entry]:
    """Return the logged lines in order; ``tolerant`` skips lines that cannot be read, as after a kill."""
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
    main = next((name for name in MAIN.values() if f"validation_{name}" in entry), None)
    if main is None:
        raise FirststepError(f"{where}: validation_{MAIN['classes']} is missing")
    if len(entry[f"validation_{main}"]) < 2:
        raise FirststepError(f"{where}: validation_{main} has no number after a step")
    checked: Entry = entry
    return checked
