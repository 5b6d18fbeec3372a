"""The settings that determine a pretraining."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firststep.errors import FirststepError
from firststep.training.config import LARGEST_SEED, MOST_THREADS, unknown_value
from firststep.training.settings import DataSettings

MOST_EPOCHS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(DataSettings):
    """The settings of an ordinary classification of all training classes.

    Examples:
        >>> from firststep.training import PretrainConfig
        >>> PretrainConfig(data="cifar-fs", data_path=Path("data"), epochs=15).batch
        64
    """

    augment: bool = True
    """Random crops, flips (not of drawings) and colour jitter."""
    ways: int = 5
    """Number of classes in a validation episode, which nearest class means classify."""
    backbone: str = "conv4"
    """Name of the network, as in ``firststep.BACKBONES``; one without pretrained weights."""
    filters: int | None = None
    """Channels of each block of conv4 and conv6; 64 if left out."""
    epochs: int = 20
    """Passes over all training images."""
    batch: int = 64
    """Batch size."""
    rate: float = 0.05
    """Largest learning rate of SGD with momentum 0.9; it falls to 0 along a cosine."""
    weight_decay: float = 5e-4
    """Weight decay of all parameters."""
    seed: int = 0
    """Seed of the initial values, the order of the images and their augmentation."""
    validation_episodes: int = 100
    """Number of fixed validation episodes; the weights with the best accuracy on them are kept."""
    device: str = "auto"
    """cpu, cuda, cuda:1, ...; auto takes a GPU if there is one."""
    threads: int = 0
    """CPU threads; 0 leaves PyTorch's choice."""

    def __post_init__(self) -> None:
        from firststep.backbones import BACKBONES  # not above, because it imports torch
        from firststep.data import DATASETS

        for option, allowed in (("data", tuple(DATASETS)), ("backbone", tuple(BACKBONES))):
            if getattr(self, option) not in allowed:
                raise unknown_value(option, getattr(self, option), allowed)
        if BACKBONES[self.backbone].body is not None:
            raise FirststepError(
                f"`backbone` {self.backbone} is pretrained already: leave `firststep pretrain` out"
            )
        limits = {
            "epochs": (1, MOST_EPOCHS), "batch": (2, 2**20), "seed": (0, LARGEST_SEED), "ways": (2, 2**16),
            "shots": (1, 2**16), "queries": (1, 2**16), "validation_episodes": (2, 2**31),
            "threads": (0, MOST_THREADS), "filters": (1, 2**16),
        }  # fmt: skip
        for option, (least, most) in limits.items():
            value = getattr(self, option)
            if value is not None and not least <= value <= most:
                raise FirststepError(f"`{option}` must be between {least} and {most}, not {value}")
        if not 0 < self.rate < math.inf:
            raise FirststepError(f"`rate` must be a positive number, not {self.rate}")
        if not 0 <= self.weight_decay < math.inf:
            raise FirststepError(f"`weight_decay` must not be negative, but is {self.weight_decay}")

    @property
    def network(self) -> None:
        """None: only networks by name can be built with any number of outputs."""

    def to_json(self) -> dict[str, Any]:
        values = dataclasses.asdict(self)
        return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}
