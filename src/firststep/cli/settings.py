"""The flags of a training: one group per class of settings in ``firststep.training``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import tyro

from firststep.cli.names import BackboneName, DatasetName
from firststep.training import (
    MethodSettings,
    NetworkSettings,
    OuterLoopSettings,
    RunningSettings,
    TaskSettings,
    TrainConfig,
)


@dataclass(frozen=True, kw_only=True)
class _DataFlags(TaskSettings):
    __doc__ = TaskSettings.__doc__
    data: DatasetName = TaskSettings.data


@dataclass(frozen=True, kw_only=True)
class _NetworkFlags(NetworkSettings):
    __doc__ = NetworkSettings.__doc__
    backbone: BackboneName = NetworkSettings.backbone


@dataclass(frozen=True)
class Settings:
    """A configuration by subject: each field is a group of flags in ``--help``."""

    data: _DataFlags
    network: _NetworkFlags
    method: MethodSettings
    outer_loop: OuterLoopSettings
    running: RunningSettings

    @staticmethod
    def of(config: TrainConfig) -> Settings:
        kinds = get_type_hints(Settings)
        return Settings(**{name: _part(kind, config) for name, kind in kinds.items()})

    def joined(self) -> TrainConfig:
        parts = (vars(getattr(self, field.name)) for field in fields(self))
        return TrainConfig(**{name: value for part in parts for name, value in part.items()})


def _part(kind: Any, config: TrainConfig) -> Any:
    return kind(**{field.name: getattr(config, field.name) for field in fields(kind)})


SettingsFlags = Annotated[Settings, tyro.conf.arg(name=""), tyro.conf.OmitArgPrefixes]
