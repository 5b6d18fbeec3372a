"""A run is a folder: configuration, provenance, metrics and checkpoints."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from operator import itemgetter
from pathlib import Path

import torch

from firststep.data import Dataset
from firststep.errors import FirststepError
from firststep.training.checkpoint import Checkpoint, load_checkpoint
from firststep.training.config import TrainConfig
from firststep.training.provenance import collect_provenance
from firststep.training.run_record import Entry, RunRecord, read_metrics, read_run_record
from firststep.utils import is_locked, make_folder, remove_leftovers, try_lock, write_text

BUILTIN = "builtin:"


class RunTaken(FirststepError):
    """Another process has made this run, or is training it.

    Examples:
        >>> from firststep.training import RunTaken, train
        >>> try:
        ...     train(run.config, run.folder)
        ... except RunTaken as error:
        ...     print("taken")
        taken
    """


@dataclass(frozen=True)
class Run:
    """A run's folder: its configuration, logged metrics and checkpoints.

    Examples:
        >>> run.config.filters, run.checkpoint_path("best").name, len(run.metrics())
        (4, 'best.safetensors', 2)
    """

    folder: Path

    @property
    def record_path(self) -> Path:
        return self.folder / "run.json"

    @property
    def metrics_path(self) -> Path:
        return self.folder / "metrics.jsonl"

    def checkpoint_path(self, which: str) -> Path:
        return self.folder / "checkpoints" / f"{which}.safetensors"

    @cached_property
    def record(self) -> RunRecord:
        """Configuration, data fingerprint and versions."""
        return read_run_record(self.record_path)

    @property
    def config(self) -> TrainConfig:
        return self.record.config

    @property
    def name(self) -> str:
        return self.folder.name

    def load(self, which: str, device: torch.device) -> Checkpoint:
        return load_checkpoint(self.checkpoint_path(which), device)

    def metrics(self, tolerant: bool = False) -> list[Entry]:
        """The logged lines, in order; ``tolerant`` leaves out lines that cannot be read, as after a kill."""
        return read_metrics(self.metrics_path, tolerant) if self.metrics_path.exists() else []

    def best_validation(self) -> tuple[int, float, float] | None:
        """Update, accuracy and half-width of the validation that the best model is from."""
        step = self.config.selected_step
        found = [
            (entry["update"], entry[key][step], entry["validation_half_width"][step])
            for entry in self.metrics()
            for key in ("validation_accuracy", "validation_accuracy_averaged")
            if key in entry
        ]
        return max(found, key=itemgetter(1), default=None)

    def keep_metrics_until(self, update: int) -> None:
        """Drop what was logged after the checkpoint that a run resumes from, and a torn last line."""
        if self.metrics_path.is_symlink() and not self.metrics_path.exists():
            raise FirststepError(
                f"{self.metrics_path} is a dead link; remove it, or bring back what it names"
            )
        if not self.metrics_path.exists():
            return
        entries = [entry for entry in self.metrics(tolerant=True) if entry["update"] <= update]
        write_text(self.metrics_path, "".join(f"{json.dumps(entry)}\n" for entry in entries))

    def make_folder(self) -> None:
        """With the folder of the checkpoints; both may exist."""
        make_folder(self.checkpoint_path("last").parent)

    def create(self, config: TrainConfig, data: Dataset, init_digest: str | None = None) -> None:
        """Write the record of a new run into its folder; one that exists is never touched."""
        if self.record_path.exists():
            raise RunTaken(
                f"{self.folder} already holds a run; go on with `firststep train --resume {self.folder}`, "
                "or choose another folder with `out`"
            )
        record = RunRecord(
            config=config,
            data_fingerprint=data.fingerprint,
            preprocessing=data.preprocessing,
            init_digest=init_digest,
            **collect_provenance(config.device),
        )
        record.save(self.record_path)

    def change(self, config: TrainConfig) -> None:
        """Go on with another configuration from here."""
        replace(self.record, config=config).save(self.record_path)

    def lock(self) -> AbstractContextManager[object]:
        """Held while a process trains here; the system releases it when the process dies."""
        lock = try_lock(self._lock_path)
        if lock is None:
            raise RunTaken(f"another process is training in {self.folder}")
        remove_leftovers(self.folder)
        return lock

    def is_locked(self) -> bool | None:
        """Whether a process trains here, without disturbing it; None where the system does not tell."""
        return is_locked(self._lock_path)

    @property
    def _lock_path(self) -> Path:
        return self.folder / ".lock"


def open_run(where: str | Path) -> Run:
    """An existing run: its folder, or ``builtin:NAME`` for one that comes with the package.

    Examples:
        >>> from firststep.training import open_run
        >>> open_run("builtin:glyphs").config.head
        'shared'
    """
    if str(where).startswith(BUILTIN):
        name = str(where).removeprefix(BUILTIN)
        folder = Path(str(resources.files("firststep"))) / "models"
        names = sorted(path.parent.name for path in folder.glob("*/run.json"))
        if name not in names:
            raise FirststepError(
                f"there is no built-in model {name!r}; there are {', '.join(names) or 'none'}"
            )
        return Run(folder / name)
    run = Run(Path(where))
    if not run.folder.is_dir():
        raise FirststepError(f"{where} is not a folder; give the folder of a run, or {BUILTIN}glyphs")
    if not run.record_path.is_file():
        raise FirststepError(f"{where} is not the folder of a run: it has no run.json")
    return run
