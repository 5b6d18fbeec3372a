"""A trained meta-learner as a repository of the Hub."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelHubMixin

from firststep.errors import FirststepError
from firststep.evaluation import Evaluation, load_evaluation
from firststep.hub.card import learner_card
from firststep.hub.files import fetched, shareable
from firststep.meta_learner import MetaLearner
from firststep.training import TrainConfig, TrainedModel, load_trained
from firststep.utils import make_folder, write_json

CONFIG = {"library": "firststep", "kind": "meta-learner"}


class HubLearner(ModelHubMixin, library_name="firststep"):
    """The best model of a run, to be saved for the Hub and loaded from it.

    ``save_pretrained(folder)`` writes a folder that is again that of a run, so that every command takes it,
    with a model card. ``push_to_hub("owner/name")`` uploads it. ``from_pretrained`` takes either. Paths of
    this machine are left out. A run of a network of your own needs that module wherever it is loaded.

    Args:
        where: folder of a run, or ``builtin:NAME``.
        licence: of the weights, by the Hub's names, such as ``"mit"``.

    Examples:
        >>> from firststep.hub import HubLearner
        >>> HubLearner("builtin:glyphs", licence="mit").save_pretrained("for-the-hub")
        >>> HubLearner.from_pretrained("for-the-hub").meta.steps
        5
    """

    def __init__(self, where: str | Path, licence: str | None = None) -> None:
        self.trained: TrainedModel = load_trained(where)
        self.licence = licence

    @property
    def meta(self) -> MetaLearner:
        """The meta-learner."""
        return self.trained.meta

    def evaluations(self) -> list[Evaluation]:
        """Return the stored tests of this very checkpoint, in the folder of its run."""
        files = sorted((self.trained.run.folder / "evaluations").glob("*.json"))
        found = [load_evaluation(path) for path in files]
        return [each for each in found if each.provenance.get("checkpoint") == self.trained.checkpoint]

    def generate_model_card(self, *args: Any, **kwargs: Any) -> ModelCard:
        """Return the model card: data, protocol, accuracy after every step, licence."""
        return learner_card(self.trained.run.record, self.evaluations(), self.licence)

    def _save_pretrained(self, save_directory: Path) -> None:
        run = self.trained.run
        if run.folder.resolve() == save_directory.resolve():
            raise FirststepError(f"{save_directory} is the run itself; save it to another folder")
        target = type(run)(save_directory)
        make_folder(target.checkpoint_path("best").parent)
        shutil.copyfile(run.checkpoint_path("best"), target.checkpoint_path("best"))
        shutil.copyfile(run.metrics_path, target.metrics_path)
        config = TrainConfig.from_json(shareable(run.config.to_json()))
        replace(run.record, config=config).save(target.record_path)
        for number, evaluation in enumerate(self.evaluations(), 1):
            provenance = {**evaluation.provenance, "config": shareable(evaluation.provenance["config"])}
            stored = save_directory / "evaluations" / f"{evaluation.data}-{number}"
            replace(evaluation, provenance=provenance).save(stored)
        write_json(save_directory / "config.json", {**CONFIG, "licence": self.licence})

    @classmethod
    def _from_pretrained(cls, *, model_id: str, licence: str | None = None, **options: Any) -> HubLearner:
        return cls(fetched(model_id, **options), licence)
