"""Number of parameters that a run learns."""

from __future__ import annotations

from functools import cache

from firststep.backbones import build_backbone
from firststep.data import get_dataset_info
from firststep.errors import FirststepError
from firststep.methods import build_method, count_parameters
from firststep.training import TrainConfig


def parameter_count(config: TrainConfig) -> float:
    """Return the number of learned parameters; NaN if the method is not defined for the network."""
    size = config.image_size or get_dataset_info(config.data).image_size
    channels = get_dataset_info(config.data).channels
    return _count(
        config.backbone,
        config.ways,
        size,
        channels,
        config.filters,
        config.method,
        config.steps,
        config.head,
    )


@cache
def _count(
    backbone: str,
    ways: int,
    size: int,
    channels: int,
    filters: int | None,
    method: str,
    steps: int,
    head: str,
) -> float:
    try:
        module = build_backbone(backbone, ways=ways, image_size=size, channels=channels, filters=filters)
        return float(count_parameters(build_method(method, steps=steps), module, head).total)
    except (ValueError, FirststepError):
        return float("nan")
