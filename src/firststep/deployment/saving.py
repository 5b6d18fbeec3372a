"""Turn an adapted model into the module that is deployed, and save it in a folder."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

from safetensors.torch import save as serialise
from torch import Tensor, nn

from firststep.data import Preprocessing
from firststep.deployment.card import KEY, ModelCard
from firststep.deployment.image_classifier import ImageClassifier
from firststep.evaluation import AdaptedModel
from firststep.evaluation._internal import NONE_LIMIT
from firststep.utils import make_folder, replacing, write_json

WEIGHTS, CARD = "adapted.safetensors", "adapted.json"


def make_deployable(
    adapted: AdaptedModel,
    preprocessing: Preprocessing,
    *,
    run: str = "",
    config: dict[str, Any] | None = None,
) -> tuple[ImageClassifier, ModelCard]:
    """Return the module, on the CPU, and its card; ``config`` is the configuration of the training run.

    Examples:
        >>> from firststep.deployment import make_deployable
        >>> classifier, card = make_deployable(adapted, trained.preprocessing)
        >>> classifier(torch.zeros(2, 16, 16, 1, dtype=torch.uint8)).shape
        torch.Size([2, 5])
    """
    promise, head = adapted.promise, adapted.head
    card = ModelCard(
        classes=adapted.support.classes,
        preprocessing=preprocessing,
        classifier=adapted.classifier,
        steps=adapted.choice.steps,
        support_images=len(adapted.support.labels),
        temperature=adapted.temperature,
        cross_validated_accuracy=None if promise is None else promise.expected,
        accuracy_interval=None if promise is None else promise.interval,
        head=head,
        none_limit=NONE_LIMIT if head is not None and head.has_none else None,
        held_out_losses=[loss if math.isfinite(loss) else None for loss in adapted.choice.losses],
        run=run,
        config=config or {},
    )
    network = copy.deepcopy(adapted.network).cpu()
    return image_classifier(network, card).eval(), card


def image_classifier(network: nn.Module, card: ModelCard) -> ImageClassifier:
    """Return the module that a card describes, with this network."""
    return ImageClassifier(
        network, card.preprocessing, card.temperature or 1.0, has_none=card.none_limit is not None
    )


def save_adapted(folder: Path, classifier: ImageClassifier, card: ModelCard) -> Path:
    """Save the weights as safetensors, with the card inside and beside them; return the path of the weights.

    Examples:
        >>> from firststep.deployment import make_deployable, save_adapted
        >>> save_adapted(Path("adapted"), *make_deployable(adapted, trained.preprocessing))
        PosixPath('adapted/adapted.safetensors')
    """
    make_folder(folder)
    return classifier_file(folder, classifier.network.state_dict(), card)


def classifier_file(folder: Path, weights: dict[str, Tensor], card: ModelCard) -> Path:
    """Write weights and card into an existing folder; return the path of the weights."""
    path = folder / WEIGHTS
    with replacing(path) as temporary:
        temporary.write_bytes(serialised(weights, card))
    write_json(folder / CARD, card.values())
    return path


def weights_file(network: nn.Module, card: ModelCard) -> bytes:
    return serialised(network.state_dict(), card)


def serialised(weights: dict[str, Tensor], card: ModelCard) -> bytes:
    content = {name: value.cpu().contiguous() for name, value in weights.items()}
    # Layers may share a parameter; in the file each has its own copy.
    content = {name: value.clone() for name, value in content.items()}
    return serialise(content, metadata={KEY: card.text()})
