"""The folder of a training or pretraining: record, metrics, checkpoints and a lock."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from firststep.data import Preprocessing
from firststep.errors import FirststepError
from firststep.training.checkpoint import Checkpoint, load_checkpoint
from firststep.utils import is_locked, make_folder, remove_leftovers, try_lock, write_json


class RunTaken(FirststepError):
    """The run already exists, or another process is training it.

    Examples:
        >>> from firststep.training import RunTaken, train
        >>> try:
        ...     train(run.config, run.folder)
        ... except RunTaken as error:
        ...     print("taken")
        taken
    """


@dataclass(frozen=True, kw_only=True)
class Record:
    """The configuration of a run, its data, and the code and machine that computed it."""

    FORMAT: ClassVar[str]

    config: Any
    data_fingerprint: str
    preprocessing: Preprocessing | None
    """Preprocessing of the images; None for a task source, which has none."""
    firststep: str | None = None
    """Version of the package."""
    commit: str | None = None
    torch: str
    python: str
    machine: str

    def save(self, path: Path) -> None:
        content = {
            "format": self.FORMAT,
            **asdict(self),
            "config": self.config.to_json(),
            "preprocessing": None if self.preprocessing is None else self.preprocessing.describe(),
        }
        write_json(path, content)


@dataclass(frozen=True)
class RunFolder:
    """Paths in the folder of a run, and its lock."""

    RECORD: ClassVar[str]
    """Name of the file with the record."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def record_path(self) -> Path:
        return self.folder / self.RECORD

    @property
    def metrics_path(self) -> Path:
        return self.folder / "metrics.jsonl"

    def checkpoint_path(self, which: str) -> Path:
        return self.folder / "checkpoints" / f"{which}.safetensors"

    def load(self, which: str, device: torch.device) -> Checkpoint:
        return load_checkpoint(self.checkpoint_path(which), device)

    def make_folder(self) -> None:
        """Make the folder and that of the checkpoints; both may exist."""
        make_folder(self.checkpoint_path("last").parent)

    def lock(self) -> AbstractContextManager[object]:
        """Lock the folder for a training; the system releases the lock when the process dies."""
        lock = try_lock(self._lock_path)
        if lock is None:
            raise RunTaken(f"another process is training in {self.folder}")
        remove_leftovers(self.folder)
        return lock

    def is_locked(self) -> bool | None:
        """Return whether a process is training here; None if unknown. It does not take the lock."""
        return is_locked(self._lock_path)

    @property
    def _lock_path(self) -> Path:
        return self.folder / ".lock"
