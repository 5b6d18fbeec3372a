"""The model card of an exported classifier: the JSON that every format carries beside the weights."""

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
"""The card's key in the metadata of each format."""


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """The description of an adapted classifier: its classes, its preprocessing, and how it was chosen.

    Examples:
        >>> from firststep.deployment import make_deployable
        >>> classifier, card = make_deployable(adapted, trained.preprocessing)
        >>> card.classes, card.classifier, card.support_images
        (['a', 'b', 'c', 'd', 'e'], 'steps', 10)
    """

    classes: list[str]
    preprocessing: Preprocessing
    """Resizing and cropping of an image file to the input. The model normalises by itself."""
    classifier: str
    """``steps`` (the adapted network), a probe on its features, or ``average`` (the mean of all probes)."""
    steps: int
    """Number of inner steps."""
    support_images: int
    temperature: float | None = None
    """The temperature by which the logits are already divided; None without calibration."""
    cross_validated_accuracy: float | None = None
    """Accuracy to expect, from held-out support images; choices and temperatures of a fold come from the
    other folds. None if nothing could be held out."""
    accuracy_interval: tuple[float, float] | None = None
    """95 % interval of the accuracy to expect."""
    head: HeadForm | None = None
    """Form of the last layer if it is not the network's own."""
    none_limit: float | None = None
    """Smallest score of an image that belongs to none of the classes; None without such a score."""
    held_out_losses: list[float | None] = field(default_factory=list)
    """Mean loss of held-out support images after 0, 1, 2, ... steps; null where adaptation diverged."""
    run: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    """Configuration of the training run."""
    format: str = FORMAT

    def __post_init__(self) -> None:
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise FirststepError(f"classes: expected two or more different names, got {self.classes}")
        if self.temperature is not None and not 0 < self.temperature < float("inf"):
            raise FirststepError(f"temperature: expected a positive number, got {self.temperature}")

    def values(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {**asdict(self), "preprocessing": self.preprocessing.describe()}

    def text(self) -> str:
        # ASCII: folder names may contain undecodable bytes.
        return json.dumps(self.values(), ensure_ascii=True)


def read_card(text: str | bytes | None, where: str) -> ModelCard:
    """Parse the result of :meth:`ModelCard.text`; ``where`` names the file in errors."""
    if not text:
        raise FirststepError(f"{where} is not a classifier of `firststep adapt`: it does not say its classes")
    content = parse_json(text, where)
    check_format(content, where, FORMAT)
    return to_record(content, ModelCard, where)
