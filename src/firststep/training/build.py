"""Build the objects that a configuration names: data, episodes, device, meta-learner."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import nn

from firststep.backbones import (
    BACKBONES,
    Mlp,
    build_backbone,
    build_external,
    code_of_the_user,
    freeze,
    make_network,
    native_image_size,
)
from firststep.data import (
    Augmentation,
    Dataset,
    FeatureDataset,
    FrozenBody,
    Preprocessing,
    ProgressCallback,
    Tasks,
    TaskSource,
    open_dataset,
    open_tasks,
    tasks_of,
)
from firststep.errors import FirststepError
from firststep.meta_learner import MetaLearner
from firststep.methods import Method, build_method
from firststep.rules import QUERY_WEIGHTS
from firststep.training.config import TrainConfig
from firststep.training.feed import Drawn, Feed, Held

VALIDATION_SEED = 1_000_001
"""Seed of the validation episodes; training and test episodes have other seeds."""


def choose_device(name: str) -> torch.device:
    """Return the device of this name; ``auto`` takes cuda if there is one, then mps, then cpu."""
    available = available_devices()
    if name == "auto":
        return torch.device(available[0])
    try:
        device = torch.device(name)
    except RuntimeError:
        raise FirststepError(f"{name} is not a device; here are {', '.join(available)}") from None
    if device.type in ("cuda", "mps") and device.type not in available:
        raise FirststepError(f"device {name}: PyTorch sees none here; there are {', '.join(available)}")
    try:
        torch.empty(1, device=device).fill_(1.0).item()
    except (RuntimeError, AssertionError) as error:  # no such device, or not that many
        raise FirststepError(
            f"device {name} cannot be used ({str(error).splitlines()[0]}); there are {', '.join(available)}"
        ) from None
    return device


def available_devices() -> list[str]:
    """Return the types of devices that can be used here, the fastest first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of missing drivers
        found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [*(name for name, there in found.items() if there), "cpu"]


class DataSettings(Protocol):
    """Data settings that all kinds of configuration have."""

    @property
    def data(self) -> str: ...
    @property
    def data_path(self) -> Path | None: ...
    @property
    def image_size(self) -> int | None: ...
    @property
    def network(self) -> str | None: ...
    @property
    def rotations(self) -> bool: ...
    @property
    def skip_broken(self) -> bool: ...
    @property
    def partial(self) -> bool: ...
    @property
    def cache(self) -> Path | None: ...
    @property
    def backbone(self) -> str: ...
    @property
    def device(self) -> str: ...


def open_data(config: DataSettings, progress: ProgressCallback | None = None) -> Dataset:
    """Open the dataset of a configuration in the form that its network takes; build a missing cache.

    Examples:
        >>> from firststep.training import open_data
        >>> open_data(run.config).name
        'glyphs'
    """
    tasks = getattr(config, "tasks", None)  # a pretraining has no such field
    if tasks is not None:
        return open_tasks(tasks)
    return through_body(open_images(config, progress), config, progress)


def open_images(config: DataSettings, progress: ProgressCallback | None = None) -> Dataset:
    """Open the dataset as images, even if the network takes features of them."""
    size = config.image_size
    if size is None and config.network is not None:
        size = native_image_size(config.network)
    return open_dataset(
        config.data,
        config.data_path,
        image_size=size,
        normalisation=BACKBONES[config.backbone].normalisation,
        rotations=config.rotations,
        skip_broken=config.skip_broken,
        partial=config.partial,
        cache=config.cache,
        progress=progress,
    )


def through_body(data: Dataset, config: DataSettings, progress: ProgressCallback | None = None) -> Dataset:
    """Return the features of a dataset if the network has a frozen body, else the dataset itself."""
    backbone = BACKBONES[config.backbone]
    if backbone.body is None:
        return data
    body = backbone.body().to(choose_device(config.device))
    device = next(body.buffers()).device
    digest = body.digest
    assert isinstance(digest, str)

    def compute(images: np.ndarray) -> np.ndarray:
        features: np.ndarray = body(torch.from_numpy(images).to(device)).cpu().numpy()
        return features

    count = compute(np.zeros((1, data.channels, data.image_size, data.image_size), np.float32)).shape[1]
    frozen = FrozenBody(name=config.backbone, digest=digest, features=count, compute=compute)
    return FeatureDataset(data, frozen, progress)


def open_training_data(config: DataSettings, progress: ProgressCallback | None = None) -> Dataset:
    """Open the dataset and compute the features of a frozen body, if any, before training starts."""
    data = open_data(config, progress)
    if isinstance(data, FeatureDataset):
        for split in ("train", "val"):
            data.split(split)
    return data


def method_of(config: TrainConfig) -> Method:
    method = build_method(config.method, rate=config.rate, steps=config.steps)
    if config.query_weights is not None:
        method = replace(method, query_weights=QUERY_WEIGHTS[config.query_weights])
    moves = config.inner_moves
    return method if moves is None else replace(method, rule=method.rule.moving_only(moves))


def build_meta_learner(
    config: TrainConfig,
    preprocessing: Preprocessing | None,
    *,
    device: torch.device | None = None,
    weights_follow: bool = False,
) -> MetaLearner:
    """Build the untrained meta-learner of a configuration.

    Args:
        config: the configuration.
        preprocessing: preprocessing of the images; None for a task source.
        device: this process's device, if the configuration names only the type.
        weights_follow: whether a checkpoint is loaded next, which makes pretrained weights unnecessary.

    Examples:
        >>> from firststep.training import build_meta_learner
        >>> build_meta_learner(run.config, dataset.preprocessing).steps
        2
    """
    device = device or choose_device(config.device)
    if config.threads:
        torch.set_num_threads(config.threads)
    generator = torch.Generator().manual_seed(config.seed)
    try:
        method = method_of(config)
        network = _network(config, preprocessing, generator, weights_follow)
        if config.freeze is not None:
            freeze(network, config.freeze)
        return MetaLearner(
            method.prepare(network, generator).to(device),
            method.rule,
            loss=config.loss,
            steps=config.steps,
            conditioning=config.conditioning_loss,
            head=config.head,
            **vars(config.engine_options),
            # Separate generator: the rule's initial values must not depend on the network's size.
            generator=torch.Generator().manual_seed(config.seed),
        )
    except ValueError as error:
        raise FirststepError(str(error)) from None


def _network(
    config: TrainConfig, preprocessing: Preprocessing | None, generator: torch.Generator, weights_follow: bool
) -> nn.Module:
    if config.tasks is not None:
        return _network_for_tasks(config, open_tasks(config.tasks), generator)
    assert preprocessing is not None
    if config.network is None:
        return build_backbone(
            config.backbone,
            ways=config.ways,
            image_size=preprocessing.image_size,
            channels=preprocessing.channels,
            filters=config.filters,
            generator=generator,
        )
    network = build_external(
        config.network,
        ways=config.ways,
        image_size=preprocessing.image_size,
        channels=preprocessing.channels,
        seed=config.seed,
        pretrained=config.pretrained,
        mean=preprocessing.mean,
        std=preprocessing.std,
        load_weights=not weights_follow,
    )
    images = torch.zeros(2, preprocessing.channels, preprocessing.image_size, preprocessing.image_size)
    with torch.no_grad(), code_of_the_user(f"{config.network} failed on images of {list(images.shape)}"):
        network(images)
    return network


def _network_for_tasks(config: TrainConfig, source: TaskSource, generator: torch.Generator) -> nn.Module:
    """Return the network for the inputs and targets of a source's tasks."""
    x, y, _, _ = source.tasks("train", shots=2, queries=1)[0]
    arrays = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    sizes = {"inputs": x[0].size, "outputs": y[0].size} if arrays else {}
    if config.network is not None:
        torch.manual_seed(config.seed)  # for modules that draw from torch's default generator
        return make_network(config.network, sizes)
    if not arrays or x.ndim != 2:
        raise FirststepError(
            f"`backbone=mlp` takes one vector per sample: give `network` for the tasks of {source.name}"
        )
    return Mlp(sizes["inputs"], sizes["outputs"], units=config.filters, generator=generator)


def training_episodes(config: TrainConfig, data: Dataset) -> Tasks:
    if isinstance(data, TaskSource):
        return _episodes(config, data, "train", config.seed)
    # A mirrored letter is a different letter, so drawings are not flipped.
    augment = Augmentation(flip=not data.preprocessing.ink) if config.augment else False
    return _episodes(config, data, "train", config.seed, augment)


def validation_episodes(config: TrainConfig, data: Dataset) -> Tasks:
    return _episodes(config, data, "val", VALIDATION_SEED)


def build_feed(config: TrainConfig, episodes: Tasks, device: torch.device) -> Feed:
    """Return tasks on the device that a training uses."""
    if config.data_on_device:
        return Held(episodes, device)
    usual = 0 if device.type == "cpu" else config.meta_batch
    return Drawn(episodes, device, usual if config.prefetch is None else config.prefetch)


def _episodes(
    config: TrainConfig, data: Dataset, split: str, seed: int, augment: Augmentation | bool = False
) -> Tasks:
    return tasks_of(
        data,
        split,
        ways=config.ways,
        shots=config.shots,
        queries=config.queries,
        seed=seed,
        augment=augment,
    )
