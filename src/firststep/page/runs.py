"""The runs of a folder while they train: their records and metrics at this moment.

The library's own readers read a run while another process writes it. Metrics grow by whole lines, and an
incomplete last line is ignored until it is complete.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firststep.errors import FirststepError, unknown
from firststep.evaluation import METRICS
from firststep.evaluation._internal import MAIN
from firststep.page.messages import one_line
from firststep.training import Run, open_since, saved_progress, training_time

DEEPEST = 3
"""Depth of nested folders that is searched: sweeps and papers nest their runs."""
MOST_RUNS = 200
SILENCE = 15 * 60.0
"""Seconds without a sign of life after which a run that never ended counts as stopped."""


class RunsFolder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        return self.folder.absolute().name

    def listed(self) -> dict[str, Run]:
        """Return the runs by their names relative to the folder, latest first."""
        found = sorted(self._found(self.folder, DEEPEST), key=_last_sign, reverse=True)[:MOST_RUNS]
        return {_text(run.folder.relative_to(self.folder).as_posix()): run for run in found}

    def _found(self, folder: Path, deep: int) -> Iterator[Run]:
        try:
            entries = sorted(folder.iterdir())
        except OSError:  # missing or not readable
            return
        for path in entries:
            if path.name.startswith(".") or not path.is_dir():
                continue
            run = Run(path)
            if run.record_path.is_file():
                yield run
            elif deep > 1 and not path.is_symlink():
                yield from self._found(path, deep - 1)

    def describe(self) -> dict[str, Any]:
        return {
            "folder_name": self.name,
            "runs": [self._line(key, run) for key, run in self.listed().items()],
        }

    def _line(self, key: str, run: Run) -> dict[str, Any]:
        line = {"id": key, "name": _text(run.name)}
        try:
            return {**line, **_summary(run), "error": None}
        except Exception as error:  # a damaged run must not hide the others
            return {**line, "state": "damaged", "error": one_line(error, [str(self.folder), str(run.folder)])}

    def curves(self, key: str) -> dict[str, Any]:
        """Return everything a run has logged so far, per validation."""
        runs = self.listed()
        if key not in runs:
            raise unknown("run", key, runs)
        entries = runs[key].metrics(tolerant=True)
        main = MAIN[runs[key].config.kind]
        # A metric may be missing: the condition number is not defined for every kind of problem.
        curves = {
            "updates": [entry["update"] for entry in entries],
            "main": [entry.get(f"validation_{main}", []) for entry in entries],
            "condition_number": [entry.get("validation_condition_number", []) for entry in entries],
        }
        return {"id": key, **_summary(runs[key]), **_finite(curves)}


def _summary(run: Run) -> dict[str, Any]:
    config = run.config
    entries = run.metrics(tolerant=True)
    update, best = _progress(run, entries)
    state = _state(run, config.is_finished(update, best))
    latest = entries[-1] if entries else {}
    main = MAIN[config.kind]
    ways = f"{config.ways}-way " if config.tasks is None else ""
    return {
        "state": state,
        "updates": update,
        "of": config.total_updates,
        "seconds_left": _seconds_left(run, update, config.total_updates) if state == "training" else None,
        "summary": {
            "label": config.describe(),
            "data": config.source,
            "backbone": config.architecture,
            "task": f"{ways}{config.shots}-shot",
            "steps": config.steps,
            "seed": config.seed,
        },
        "metric": {"title": METRICS[main].title, "percent": METRICS[main].percent},
        "latest": _finite(latest.get(f"validation_{main}", [])),
    }


def _progress(run: Run, entries: list[dict[str, Any]]) -> tuple[int, int]:
    """Return the last known update and the update of the best validation."""
    try:
        return saved_progress(run.checkpoint_path("last"))
    except FirststepError:  # being replaced at this moment, or damaged: the log still has it
        return (entries[-1]["update"], entries[-1]["update"]) if entries else (0, 0)


def _state(run: Run, finished: bool) -> str:
    if finished:
        return "finished"
    held = run.is_locked()
    if held is None:  # the session has not ended: it is running, or it was killed
        held = open_since(run.folder) is not None and time.time() - _last_sign(run) < SILENCE
    return "training" if held else "stopped"


def _seconds_left(run: Run, update: int, total: int) -> float | None:
    """Extrapolate from the time that the run has taken so far; None where part of that is unknown."""
    known, began = training_time(run.folder), open_since(run.folder)
    if known is None or began is None or known.killed != 1 or update == 0:
        return None
    session = _changed(run.metrics_path) - began
    return round((total - update) * (known.seconds + session) / update, 1) if session > 0 else None


def _text(name: str) -> str:
    """Return a name that a browser can send back: undecodable bytes are escaped."""
    return os.fsencode(name).decode("utf-8", "replace")


def _finite(value: Any) -> Any:
    """Replace NaN and infinity by None, because JSON has neither."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return value if not isinstance(value, float) or math.isfinite(value) else None


def _last_sign(run: Run) -> float:
    return max(map(_changed, (run.metrics_path, run.record_path)))


def _changed(path: Path) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
