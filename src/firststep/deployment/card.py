"""What an exported classifier is: the text that every format carries beside the weights."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from firststep.data import Preprocessing
from firststep.errors import FirststepError
from firststep.evaluation._internal import HeadForm
from firststep.utils import check_format, parse_json, to_record

FORMAT = "firststep-classifier-1"
KEY = "firststep"
"""The name of the text in each format's own metadata."""


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What an adapted classifier is: its classes, its preprocessing, and how it was chosen.

    Examples:
        >>> from firststep.deployment import make_deployable
        >>> classifier, card = make_deployable(adapted, trained.preprocessing)
        >>> card.classes, card.classifier, card.support_images
        (['a', 'b', 'c', 'd', 'e'], 'steps', 10)
    """

    classes: list[str]
    preprocessing: Preprocessing
    """How an image file becomes the input: resized and cut as this says. The model normalises it itself."""
    classifier: str
    """``steps``, the adapted network, the probe on its features, or ``average``, the mean of all probes."""
    steps: int
    """Inner steps that were taken."""
    support_images: int
    temperature: float | None = None
    """By which the logits are divided already; None where the probabilities are not calibrated."""
    cross_validated_accuracy: float | None = None
    """Share of the held-out support images that were classified correctly. Choices and temperatures of a
    fold come from the other folds. None where nothing could be held out."""
    accuracy_interval: tuple[float, float] | None = None
    """Wilson's 95 % interval of that share."""
    head: HeadForm | None = None
    """Form of the last layer where it is not the network's own."""
    none_limit: float | None = None
    """Smallest second output of an image that is none of the classes; None where there is no such output."""
    held_out_losses: list[float | None] = field(default_factory=list)
    """Mean loss of held-out support images after 0, 1, 2, ... steps; null where adaptation diverged."""
    run: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    """Of the training that the model comes from."""
    format: str = FORMAT

    def __post_init__(self) -> None:
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise FirststepError(f"classes: expected two or more different names, got {self.classes}")
        if self.temperature is not None and not 0 < self.temperature < float("inf"):
            raise FirststepError(f"temperature: expected a positive number, got {self.temperature}")

    def values(self) -> dict[str, Any]:
        """As JSON has them."""
        return {**asdict(self), "preprocessing": self.preprocessing.describe()}

    def text(self) -> str:
        # ASCII: names of folders may hold bytes that are no text.
        return json.dumps(self.values(), ensure_ascii=True)


def read_card(text: str | bytes | None, where: str) -> ModelCard:
    """What :meth:`ModelCard.text` gave; ``where`` is what an error calls it."""
    if not text:
        raise FirststepError(f"{where} is not a classifier of `firststep adapt`: it does not say its classes")
    content = parse_json(text, where)
    check_format(content, where, FORMAT)
    return to_record(content, ModelCard, where)
