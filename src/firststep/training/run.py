"""A run is a folder: configuration, provenance, metrics and checkpoints."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from firststep.data import Dataset
from firststep.errors import FirststepError
from firststep.training.checkpoint import Checkpoint, load_checkpoint
from firststep.training.config import TrainConfig
from firststep.training.provenance import collect_provenance
from firststep.utils import read_json, try_lock, write_json, write_text

BUILTIN = "builtin:"


class RunTaken(FirststepError):
    """Another process has made this run, or is training it."""


@dataclass(frozen=True)
class Run:
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
    def record(self) -> dict[str, Any]:
        """Configuration, data fingerprint and versions, as written when the run began."""
        record = read_json(self.record_path)
        if not isinstance(record, dict) or "config" not in record:
            raise FirststepError(f"{self.record_path} is not the record of a run")
        return record

    @cached_property
    def config(self) -> TrainConfig:
        try:
            return TrainConfig.from_json(self.record["config"])
        except FirststepError as error:
            raise FirststepError(f"{self.record_path}: {error}") from None

    @property
    def name(self) -> str:
        return self.folder.name

    def load(self, which: str, device: torch.device) -> Checkpoint:
        return load_checkpoint(self.checkpoint_path(which), device)

    def metrics(self, tolerant: bool = False) -> list[dict[str, Any]]:
        """The logged lines, in order; ``tolerant`` leaves out lines that cannot be read, as after a kill."""
        if not self.metrics_path.is_file():
            return []
        entries = []
        for line in self.metrics_path.read_bytes().splitlines():
            try:
                entry = json.loads(line)
                if not isinstance(entry, dict) or type(entry.get("update")) is not int:
                    raise ValueError("a line is not an entry with an update")
                entries.append(entry)
            except ValueError as error:
                if not tolerant:
                    raise FirststepError(f"{self.metrics_path} is damaged ({error})") from None
        return entries

    def keep_metrics_until(self, update: int) -> None:
        """Drop what was logged after the checkpoint that a run resumes from, and a torn last line."""
        if not self.metrics_path.is_file():
            return
        entries = [entry for entry in self.metrics(tolerant=True) if entry["update"] <= update]
        write_text(self.metrics_path, "".join(f"{json.dumps(entry)}\n" for entry in entries))

    def make_folder(self) -> None:
        """With the folder of the checkpoints; both may exist."""
        try:
            self.checkpoint_path("last").parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FirststepError(f"cannot make the run folder {self.folder}: {error.strerror}") from None

    def create(self, config: TrainConfig, data: Dataset) -> None:
        """Write the record of a new run into its folder; one that exists is never touched."""
        if self.record_path.exists():
            raise RunTaken(
                f"{self.folder} already holds a run; go on with `firststep train --resume {self.folder}`, "
                "or choose another folder with --out"
            )
        write_json(
            self.record_path,
            {
                "config": config.to_json(),
                "data_fingerprint": data.fingerprint,
                "preprocessing": data.preprocessing.describe(),
                **collect_provenance(config.device),
            },
        )

    def change(self, config: TrainConfig) -> None:
        """Go on with another configuration from here."""
        write_json(self.record_path, {**self.record, "config": config.to_json()})

    def lock(self) -> AbstractContextManager[object]:
        """Held while a process trains here; the system releases it when the process dies."""
        lock = try_lock(self.folder / ".lock")
        if lock is None:
            raise RunTaken(f"another process is training in {self.folder}")
        return lock


def open_run(where: str | Path) -> Run:
    """An existing run: its folder, or ``builtin:NAME`` for one that comes with the package."""
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
