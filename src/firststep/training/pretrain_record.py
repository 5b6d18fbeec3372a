"""The folder of a pretraining: what it is, what it logged, its checkpoints."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from firststep.data import Dataset, Preprocessing
from firststep.errors import FirststepError
from firststep.training.checkpoint import Checkpoint, load_checkpoint
from firststep.training.pretrain_config import PretrainConfig
from firststep.training.provenance import collect_provenance
from firststep.utils import (
    check_format,
    make_folder,
    parse_json,
    read_bytes,
    read_json,
    remove_leftovers,
    to_record,
    try_lock,
    write_json,
)

FORMAT = "firststep-pretrain-1"


@dataclass(frozen=True, kw_only=True)
class PretrainRecord:
    config: PretrainConfig
    data_fingerprint: str
    preprocessing: Preprocessing
    firststep: str | None = None
    commit: str | None = None
    torch: str
    python: str
    machine: str


@dataclass(frozen=True)
class Pretraining:
    """The folder of a pretraining: ``TrainConfig(init=folder)`` starts from its best weights.

    Examples:
        >>> from firststep.training import Pretraining
        >>> Pretraining(Path("pretrained")).checkpoint_path("best")
        PosixPath('pretrained/checkpoints/best.safetensors')
    """

    folder: Path

    @property
    def record_path(self) -> Path:
        return self.folder / "pretrain.json"

    @property
    def metrics_path(self) -> Path:
        return self.folder / "metrics.jsonl"

    def checkpoint_path(self, which: str) -> Path:
        return self.folder / "checkpoints" / f"{which}.safetensors"

    @cached_property
    def record(self) -> PretrainRecord:
        if not self.record_path.is_file():
            raise FirststepError(f"{self.folder} is not the folder of a pretraining: it has no pretrain.json")
        content = read_json(self.record_path)
        check_format(content, str(self.record_path), FORMAT)
        return to_record(content, PretrainRecord, str(self.record_path))

    @property
    def config(self) -> PretrainConfig:
        return self.record.config

    def load(self, which: str, device: torch.device) -> Checkpoint:
        return load_checkpoint(self.checkpoint_path(which), device)

    def metrics(self) -> list[dict[str, Any]]:
        """A line for each epoch."""
        lines = read_bytes(self.metrics_path).splitlines() if self.metrics_path.exists() else []
        return [parse_json(line, f"{self.metrics_path}, line {n}") for n, line in enumerate(lines, 1)]

    def open(self, config: PretrainConfig, data: Dataset, *, is_new: bool, held: ExitStack) -> None:
        """Make the folder or check it, and lock it for as long as ``held``."""
        if is_new:
            make_folder(self.checkpoint_path("last").parent)
        lock = try_lock(self.folder / ".lock")
        if lock is None:
            raise FirststepError(f"another process is training in {self.folder}")
        held.enter_context(lock)
        remove_leftovers(self.folder)
        if not is_new:
            if self.record.data_fingerprint != data.fingerprint:
                raise FirststepError(f"{self.folder} was trained on other data: it cannot go on with these")
            return
        for name in ("pretrain.json", "run.json"):
            if (self.folder / name).exists():
                raise FirststepError(
                    f"{self.folder} already holds a training; go on with `firststep pretrain --resume "
                    f"{self.folder}`, or choose another folder with `out`"
                )
        record = PretrainRecord(
            config=config,
            data_fingerprint=data.fingerprint,
            preprocessing=data.preprocessing,
            **collect_provenance(config.device),
        )
        content = {
            "format": FORMAT,
            **asdict(record),
            "config": config.to_json(),
            "preprocessing": data.preprocessing.describe(),
        }
        write_json(self.record_path, content)
