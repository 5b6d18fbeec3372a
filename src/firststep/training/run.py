"""A run is a folder: configuration, provenance, metrics and checkpoints."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import ClassVar

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from firststep.data import Dataset, TaskSource
from firststep.errors import FirststepError
from firststep.evaluation import METRICS
from firststep.evaluation._internal import MAIN
from firststep.training.builtin import BUILTIN, builtin_models, shipped_models
from firststep.training.config import TrainConfig
from firststep.training.provenance import collect_provenance
from firststep.training.run_folder import RunFolder, RunTaken
from firststep.training.run_record import Entry, RunRecord, read_metrics, read_run_record
from firststep.utils import write_text


@dataclass(frozen=True)
class Run(RunFolder):
    """A run's folder: its configuration, logged metrics and checkpoints.

    Examples:
        >>> run.config.filters, run.checkpoint_path("best").name, len(run.metrics())
        (4, 'best.safetensors', 2)
    """

    RECORD: ClassVar[str] = "run.json"

    @cached_property
    def record(self) -> RunRecord:
        """Return configuration, data fingerprint and versions."""
        return read_run_record(self.record_path)

    @property
    def config(self) -> TrainConfig:
        return self.record.config

    @property
    def background_path(self) -> Path:
        return self.folder / "background.safetensors"

    def background(self) -> Tensor | None:
        """Return body features [n, d] of images from none of the user's classes; None if there are none."""
        if not self.background_path.is_file():
            return None
        try:
            return load_file(self.background_path)["features"].float()
        except (SafetensorError, KeyError) as error:
            raise FirststepError(f"{self.background_path} is damaged: {error}") from None

    def metrics(self, tolerant: bool = False) -> list[Entry]:
        """Return the logged lines in order; ``tolerant`` skips lines that cannot be read, as after a kill."""
        return read_metrics(self.metrics_path, tolerant) if self.metrics_path.exists() else []

    def best_validation(self) -> tuple[int, float, float] | None:
        """Return update, main metric and half-width of the best validation; None before the first."""
        step = self.config.selected_step
        main = MAIN[self.config.kind]
        found = [
            (entry["update"], entry[key][step], entry["validation_half_width"][step])
            for entry in self.metrics()
            for key in (f"validation_{main}", f"validation_{main}_averaged")
            if key in entry
        ]
        return (max if METRICS[main].higher_is_better else min)(found, key=itemgetter(1), default=None)

    def keep_metrics_until(self, update: int) -> None:
        """Drop lines after this update, which a resumed run logs again, and an incomplete last line."""
        if self.metrics_path.is_symlink() and not self.metrics_path.exists():
            raise FirststepError(
                f"{self.metrics_path} is a dead link; remove it, or bring back what it names"
            )
        if not self.metrics_path.exists():
            return
        entries = [entry for entry in self.metrics(tolerant=True) if entry["update"] <= update]
        write_text(self.metrics_path, "".join(f"{json.dumps(entry)}\n" for entry in entries))

    def create(self, config: TrainConfig, data: Dataset, init_digest: str | None = None) -> None:
        """Write the record of a new run; refuse a folder that has one."""
        if self.record_path.exists():
            raise RunTaken(
                f"{self.folder} already holds a run; resume it with `firststep train --resume "
                f"{self.folder}`, or choose another folder with `out`"
            )
        record = RunRecord(
            config=config,
            data_fingerprint=data.fingerprint,
            preprocessing=None if isinstance(data, TaskSource) else data.preprocessing,
            init_digest=init_digest,
            **collect_provenance(config.device),
        )
        record.save(self.record_path)

    def change(self, config: TrainConfig) -> None:
        """Replace the configuration in the record."""
        replace(self.record, config=config).save(self.record_path)


def open_run(where: str | Path) -> Run:
    """Open an existing run by its folder, or by ``builtin:NAME`` for one that comes with the package.

    Examples:
        >>> from firststep.training import open_run
        >>> open_run("builtin:glyphs").config.head
        'shared'
    """
    if str(where).startswith(BUILTIN):
        name, known = str(where).removeprefix(BUILTIN), builtin_models()
        if where not in known:
            raise FirststepError(
                f"there is no built-in model {name!r}; there are {', '.join(known) or 'none'}"
            )
        return Run(shipped_models() / name)
    run = Run(Path(where))
    if not run.folder.is_dir():
        raise FirststepError(f"{where} is not a folder; give the folder of a run, or {BUILTIN}glyphs")
    if not run.record_path.is_file():
        raise FirststepError(f"{where} is not the folder of a run: it has no run.json")
    return run
