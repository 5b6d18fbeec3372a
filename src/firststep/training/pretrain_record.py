"""The folder of a pretraining: its record, its log and its checkpoints."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from firststep.data import Dataset
from firststep.errors import FirststepError
from firststep.training.pretrain_config import PretrainConfig
from firststep.training.provenance import collect_provenance
from firststep.training.run_folder import Record, RunFolder
from firststep.utils import check_format, parse_json, read_bytes, read_json, to_record

FORMAT = "firststep-pretrain-1"


@dataclass(frozen=True, kw_only=True)
class PretrainRecord(Record):
    FORMAT: ClassVar[str] = FORMAT

    config: PretrainConfig


@dataclass(frozen=True)
class Pretraining(RunFolder):
    """The folder of a pretraining: ``TrainConfig(init=folder)`` starts from its best weights.

    Examples:
        >>> from firststep.training import Pretraining
        >>> Pretraining(Path("pretrained")).checkpoint_path("best")
        PosixPath('pretrained/checkpoints/best.safetensors')
    """

    RECORD: ClassVar[str] = "pretrain.json"

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

    def metrics(self) -> list[dict[str, Any]]:
        """Return the logged lines, one per epoch."""
        lines = read_bytes(self.metrics_path).splitlines() if self.metrics_path.exists() else []
        return [parse_json(line, f"{self.metrics_path}, line {n}") for n, line in enumerate(lines, 1)]

    def open(self, config: PretrainConfig, data: Dataset, *, is_new: bool, held: ExitStack) -> None:
        """Make or check the folder, and lock it until ``held`` closes."""
        if is_new:
            self.make_folder()
        held.enter_context(self.lock())
        if not is_new:
            if self.record.data_fingerprint != data.fingerprint:
                raise FirststepError(f"{self.folder} was trained on other data: it cannot resume with these")
            return
        for name in ("pretrain.json", "run.json"):
            if (self.folder / name).exists():
                raise FirststepError(
                    f"{self.folder} already holds a training; resume it with `firststep pretrain --resume "
                    f"{self.folder}`, or choose another folder with `out`"
                )
        record = PretrainRecord(
            config=config,
            data_fingerprint=data.fingerprint,
            preprocessing=data.preprocessing,
            **collect_provenance(config.device),
        )
        record.save(self.record_path)
