"""A trained model, ready to be tested or used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from firststep.data import Dataset, Preprocessing, open_dataset
from firststep.data.cache import Progress
from firststep.errors import FirststepError
from firststep.network import Params
from firststep.rules import Rule, scaled
from firststep.training import Run, Setup, TrainConfig, open_run, set_up
from firststep.training.checkpoint import check_fits
from firststep.training.setup import open_data


@dataclass(frozen=True)
class Trained:
    run: Run
    setup: Setup
    params: Params
    own: Params
    update: int
    """The meta-update that these parameters are from."""

    @property
    def config(self) -> TrainConfig:
        return self.setup.config

    def rule(self, rate_multiplier: float = 1.0) -> Rule:
        """The update rule, with every step so many times as long."""
        if not 0 < rate_multiplier < float("inf"):
            raise FirststepError(f"--rate-multiplier must be a positive number, not {rate_multiplier}")
        rule = self.setup.method.rule
        return rule if rate_multiplier == 1 else scaled(rule, rate_multiplier)

    @property
    def preprocessing(self) -> Preprocessing:
        """How the pictures it was trained on were prepared."""
        return Preprocessing(**self.run.record["preprocessing"])


def load_trained(
    where: str | Path, *, which: str = "best", device: str | None = None, on: torch.device | None = None
) -> Trained:
    """The model of a run folder or ``builtin:NAME``: the best by validation, or the ``last``.

    Args:
        where: the run.
        which: of its checkpoints.
        device: instead of the one it was trained with; it is noted in results.
        on: the very device of this process, where ``device`` says only its kind.
    """
    run = open_run(where)
    config = run.config if device is None else replace(run.config, device=device)
    preprocessing = Preprocessing(**run.record["preprocessing"])
    setup = set_up(config, image_size=preprocessing.image_size, channels=preprocessing.channels, device=on)
    path = run.checkpoint_path(which)
    if not path.is_file():
        raise FirststepError(
            f"{where} has no {which} checkpoint yet; go on with `firststep train --resume {where}`"
        )
    checkpoint = run.load(which, setup.device)
    params, own = setup.initial()
    check_fits(path, params, checkpoint.params, "network")
    check_fits(path, own, checkpoint.own, "method")
    return Trained(run, setup, checkpoint.params, checkpoint.own, checkpoint.update)


def data_for(
    trained: Trained,
    name: str | None = None,
    path: Path | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """The dataset a model was trained on, or another prepared in the same way."""
    config = trained.config
    if name is None:
        moved = config if path is None else replace(config, data_path=path)
        data = open_data(moved, progress)
    else:
        size = trained.preprocessing.image_size
        channels = trained.preprocessing.channels if name == "folder" else None
        data = open_dataset(name, path, image_size=size, channels=channels, progress=progress)
    if data.channels != trained.preprocessing.channels:
        raise FirststepError(
            f"{data.name} has pictures with {data.channels} channels, but the model takes "
            f"{trained.preprocessing.channels}"
        )
    return data
