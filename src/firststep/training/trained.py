"""A trained meta-learner, ready to be tested or used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from firststep.data import Dataset, Preprocessing, ProgressCallback, open_dataset, open_tasks
from firststep.distributed import Team
from firststep.errors import FirststepError
from firststep.evaluation import Evaluation, EvaluationSettings, evaluate
from firststep.evaluation._internal import DEFAULTS
from firststep.meta_learner import MetaLearner
from firststep.training.build import build_meta_learner, open_data, through_body
from firststep.training.checkpoint import check_fits
from firststep.training.config import TrainConfig
from firststep.training.provenance import package_version
from firststep.training.run import Run, open_run


@dataclass(frozen=True)
class TrainedModel:
    """The model of a run: the learner, its configuration, and the checkpoint of its parameters.

    Examples:
        >>> from firststep.evaluation import EvaluationSettings
        >>> trained.config == run.config, type(trained.meta).__name__
        (True, 'MetaLearner')
        >>> trained.evaluate(dataset, EvaluationSettings(steps=(0, 1), episodes=2)).at(0).shape
        (2,)
    """

    run: Run
    config: TrainConfig
    meta: MetaLearner
    update: int
    """Meta-update of the parameters."""
    checkpoint: str
    """Digest of the checkpoint from which they were read."""

    @property
    def preprocessing(self) -> Preprocessing:
        """Preprocessing of the training images; an error for a model that takes none."""
        found = self.run.record.preprocessing
        if found is None:
            raise FirststepError(
                f"{self.run.name} was trained on tasks of {self.config.tasks}, not on images"
            )
        return found

    @property
    def background(self) -> Tensor | None:
        """Body features of images from no class, used to detect "none of these"; None if there are none."""
        return self.run.background()

    def evaluate(
        self,
        data: Dataset,
        settings: EvaluationSettings = DEFAULTS,
        *,
        progress: Callable[[], None] | None = None,
        team: Team | None = None,
    ) -> Evaluation:
        """Test by :func:`firststep.evaluation.evaluate`; what the settings leave out is as trained."""
        config = self.config
        return evaluate(
            self.meta,
            data,
            as_trained(settings, config),
            label=config.describe(),
            run=self.run.name,
            provenance={
                "config": config.to_json(),
                "update": self.update,
                "checkpoint": self.checkpoint,
                "firststep": package_version(),
                "torch": torch.__version__,
            },
            progress=progress,
            team=team,
        )

    def describe(self) -> dict[str, Any]:
        """Return the description to store with every result of this model."""
        return {
            "run": self.run.name,
            "config": self.config.to_json(),
            "preprocessing": self.preprocessing.describe(),
        }


def as_trained(settings: EvaluationSettings, config: TrainConfig) -> EvaluationSettings:
    """Return the settings with those of the training for what they leave out."""
    return settings.or_else(
        ways=1 if config.tasks else config.ways,
        shots=config.shots,
        queries=config.queries,
        subset=config.measured_subset,
    )


def load_trained(
    where: str | Path, *, which: str = "best", device: str | None = None, on: torch.device | None = None
) -> TrainedModel:
    """Load the model of a run folder or ``builtin:NAME``: the best by validation, or the ``last``.

    Args:
        where: the run.
        which: the checkpoint, ``best`` or ``last``.
        device: replaces the run's device, and is noted in results.
        on: device of this process, if ``device`` names only the type.

    Examples:
        >>> from firststep.training import load_trained
        >>> meta = load_trained("builtin:glyphs").meta
        >>> meta.steps
        5
    """
    run = open_run(where)
    config = run.config if device is None else replace(run.config, device=device)
    preprocessing = run.record.preprocessing
    meta = build_meta_learner(config, preprocessing, device=on, weights_follow=True)
    path = run.checkpoint_path(which)
    if not path.is_file():
        raise FirststepError(
            f"{where} has no {which} checkpoint yet; resume it with `firststep train --resume {where}`"
        )
    checkpoint = run.load(which, meta.device)
    check_fits(path, meta.state_dict(), checkpoint.model)
    meta.load_state_dict(checkpoint.model)
    return TrainedModel(run, config, meta, checkpoint.update, checkpoint.digest)


def data_for(
    trained: TrainedModel,
    name: str | None = None,
    path: Path | None = None,
    progress: ProgressCallback | None = None,
) -> Dataset:
    """Open a model's own dataset, or another one with the same preprocessing.

    Examples:
        >>> from firststep.training import data_for
        >>> data_for(trained).fingerprint == run.record.data_fingerprint
        True
    """
    config = trained.config
    if config.tasks is not None:
        if path is not None:
            raise FirststepError(f"`data_path` goes with images, not with tasks of {config.tasks}")
        return open_tasks(config.tasks if name is None else name)
    if name is None:
        moved = config if path is None else replace(config, data_path=path)
        data = open_data(moved, progress)
    else:
        size = trained.preprocessing.image_size
        channels = trained.preprocessing.channels if name == "folder" else None
        data = open_dataset(
            name,
            path,
            image_size=size,
            channels=channels,
            normalisation=trained.preprocessing.normalisation,
            progress=progress,
        )
        data = through_body(data, config, progress)
    if data.channels != trained.preprocessing.channels:
        raise FirststepError(
            f"{data.name} has images with {data.channels} channels, but the model takes "
            f"{trained.preprocessing.channels}"
        )
    return data
