"""Number of parameters that a run learns."""

from __future__ import annotations

from functools import cache
from typing import Any

from firststep.backbones import build_backbone
from firststep.data import get_dataset_info
from firststep.errors import FirststepError
from firststep.methods import build_method, count_parameters
from firststep.training import TrainConfig


def parameter_count(config: TrainConfig) -> float:
    """Return the number of learned parameters; NaN if the method is not defined for the network."""
    info = get_dataset_info(config.data)
    return _count(
        config.method,
        config.steps,
        config.head,
        name=config.backbone,
        ways=config.ways,
        image_size=config.image_size or info.image_size,
        channels=info.channels,
        filters=config.filters,
    )


@cache
def _count(method: str, steps: int, head: str, **network: Any) -> float:
    try:
        return float(
            count_parameters(build_method(method, steps=steps), build_backbone(**network), head).total
        )
    except (ValueError, FirststepError):
        return float("nan")
