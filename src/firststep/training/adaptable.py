"""A pretrained network from elsewhere, with fixed features, to be adapted to a few images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from firststep.backbones import HUGGING_FACE, TIMM, native_image_size
from firststep.data import Preprocessing
from firststep.errors import FirststepError
from firststep.meta_learner import MetaLearner
from firststep.training.build import build_meta_learner
from firststep.training.config import TrainConfig
from firststep.training.trained import TrainedModel

USUAL_SIZE = 224
"""Side of the images of a network that does not name its own."""


@dataclass(frozen=True)
class AdaptableNetwork:
    """What ``firststep adapt`` starts from: a learner, and how images become its input."""

    meta: MetaLearner
    preprocessing: Preprocessing
    background: Tensor | None
    """Features of images of no class; None without any."""
    name: str
    config: dict[str, Any]

    @staticmethod
    def of(trained: TrainedModel) -> AdaptableNetwork:
        """Return what a run or a built-in model has."""
        described = trained.describe()
        return AdaptableNetwork(
            trained.meta, trained.preprocessing, trained.background, described["run"], described["config"]
        )


def pretrained_network(
    network: str, pretrained: str, *, image_size: int | None = None, device: str | None = None
) -> AdaptableNetwork:
    """Build a network of timm or transformers with pretrained weights, whose features stay fixed.

    Args:
        network: ``timm:NAME`` or ``hf:NAME``.
        pretrained: ``default`` for the library's own weights, which it may have to download, or a file.
        image_size: side of the images; the network's own if left out.
        device: cpu, cuda, ...; chosen automatically if left out.
    """
    if not network.startswith((TIMM, HUGGING_FACE)):
        raise FirststepError(f"`network={network}`: pretrained networks are {TIMM}NAME or {HUGGING_FACE}NAME")
    size = image_size or native_image_size(network) or USUAL_SIZE
    config = TrainConfig(
        network=network,
        pretrained=pretrained,
        image_size=size,
        method="anil",
        head="zero",
        conditioning="none",
        device=device or TrainConfig.device,
        updates=1,
    )
    preprocessing = Preprocessing(image_size=size)
    meta = build_meta_learner(config, preprocessing)
    return AdaptableNetwork(meta, preprocessing, None, network, config.to_json())
