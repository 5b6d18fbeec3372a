"""From a configuration to the things it names: data, model, rule, device."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch

from firststep.backbones import build_backbone
from firststep.data import Augmentation, Dataset, Episode, Episodes, open_dataset
from firststep.data.cache import Progress
from firststep.errors import FirststepError
from firststep.network import FunctionalModule, Params
from firststep.rules import Method, build_method
from firststep.task import Task
from firststep.training.config import TrainConfig

# Episodes for training, validation and test come from different seeds, so that changing one changes no other.
VALIDATION_SEED = 1_000_001
TEST_SEED = 2_000_003


@dataclass(frozen=True)
class Setup:
    config: TrainConfig
    model: FunctionalModule
    method: Method
    device: torch.device

    def initial(self) -> tuple[Params, Params]:
        """θ(0) and the rule's own parameters before any training."""
        params = {name: value.to(self.device) for name, value in self.model.params().items()}
        generator = torch.Generator().manual_seed(self.config.seed)
        own = self.method.rule.init(self.model, params, generator)
        return params, own

    def task(self, episode: Episode) -> Task:
        return Task(*(torch.from_numpy(part) for part in episode)).to(self.device)


def choose_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise FirststepError(f"--device {name} is not a device; try cpu, cuda or cuda:0") from None
    if device.type == "cuda":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of missing drivers; our own line says it
            if not torch.cuda.is_available():
                raise FirststepError(f"--device {name}: PyTorch sees no CUDA device here; use --device cpu")
    return device


def open_data(config: TrainConfig, progress: Progress | None = None) -> Dataset:
    """The dataset of a configuration, its cache built if need be."""
    return open_dataset(
        config.data,
        config.data_path,
        image_size=config.image_size,
        rotations=config.rotations,
        skip_broken=config.skip_broken,
        partial=config.partial,
        cache_folder=config.cache,
        progress=progress,
    )


def set_up(
    config: TrainConfig, *, image_size: int, channels: int, device: torch.device | None = None
) -> Setup:
    """The network and method of a configuration for pictures of this form.

    ``device``: the very one that this process shall use, where the configuration says only its kind.
    """
    device = device or choose_device(config.device)
    if config.threads:
        torch.set_num_threads(config.threads)
    generator = torch.Generator().manual_seed(config.seed)
    try:
        module = build_backbone(
            config.backbone,
            ways=config.ways,
            image_size=image_size,
            channels=channels,
            filters=config.filters,
            generator=generator,
        )
        method = build_method(config.method, rate=config.rate, steps=config.steps)
        model = FunctionalModule(method.prepare(module, generator).to(device))
        if config.term is not None:
            model.subset(config.term.subset)
    except ValueError as error:
        raise FirststepError(str(error)) from None
    return Setup(config, model, method, device)


def training_episodes(config: TrainConfig, data: Dataset) -> Episodes:
    return episodes_of(config, data, "train", config.seed, augment=config.augment)


def validation_episodes(config: TrainConfig, data: Dataset) -> Episodes:
    return episodes_of(config, data, "val", VALIDATION_SEED)


def episodes_of(config: TrainConfig, data: Dataset, split: str, seed: int, augment: bool = False) -> Episodes:
    # A mirrored letter is another letter: drawings are not flipped.
    augmentation = Augmentation(flip=not data.preprocessing.ink) if augment else False
    return Episodes(
        data.split(split),
        ways=config.ways,
        shots=config.shots,
        queries=config.queries,
        seed=seed,
        augment=augmentation,
    )
