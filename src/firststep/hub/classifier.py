"""An adapted classifier as a repository of the Hub."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelHubMixin
from safetensors.torch import load as deserialise

from firststep.deployment import DeployedModel, load_deployed
from firststep.deployment._internal import WEIGHTS, classifier_file
from firststep.errors import FirststepError
from firststep.hub.card import classifier_card
from firststep.hub.files import fetched, shareable
from firststep.utils import make_folder, read_bytes, write_json

CONFIG = {"library": "firststep", "kind": "classifier"}


class HubClassifier(ModelHubMixin, library_name="firststep"):
    """A classifier of ``firststep adapt``, to be saved for the Hub and loaded from it.

    The saved folder is again one that ``firststep predict`` takes, with a model card.

    Args:
        where: folder of ``firststep adapt``, or an exported .safetensors file.
        licence: of the weights, by the Hub's names, such as ``"mit"``.

    Examples:
        >>> from firststep.deployment import make_deployable, save_adapted
        >>> from firststep.hub import HubClassifier
        >>> made = make_deployable(adapted, trained.preprocessing, config=run.config.to_json())
        >>> path = save_adapted(Path("adapted"), *made)
        >>> HubClassifier("adapted").save_pretrained("classifier-for-the-hub")
        >>> HubClassifier.from_pretrained("classifier-for-the-hub").model.card.classes
        ['a', 'b', 'c', 'd', 'e']
    """

    def __init__(self, where: str | Path, licence: str | None = None) -> None:
        path = Path(where) / WEIGHTS if Path(where).is_dir() else Path(where)
        if path.suffix.lower() != ".safetensors":
            raise FirststepError(
                f"{path}: the Hub takes a folder of `firststep adapt` or a .safetensors file"
            )
        self.model: DeployedModel = load_deployed(path)
        self.licence = licence
        self._weights = read_bytes(path)

    def generate_model_card(self, *args: Any, **kwargs: Any) -> ModelCard:
        """Return the model card: classes, how the model was made, cross-validated accuracy, licence."""
        return classifier_card(self.model.card, self.licence)

    def _save_pretrained(self, save_directory: Path) -> None:
        card = replace(self.model.card, config=shareable(self.model.card.config))
        make_folder(save_directory)
        classifier_file(save_directory, deserialise(self._weights), card)
        write_json(save_directory / "config.json", {**CONFIG, "licence": self.licence})

    @classmethod
    def _from_pretrained(cls, *, model_id: str, licence: str | None = None, **options: Any) -> HubClassifier:
        return cls(fetched(model_id, **options), licence)
