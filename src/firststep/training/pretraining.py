"""Pretrain a plain classifier over all training classes; meta-training can start from its body.

A pretraining is a folder. When it is killed and resumed, it ends bit-identical to an uninterrupted one. After
every epoch, nearest class means classify validation episodes on the network's features. This is the simplest
few-shot classifier, and it uses classes that the network has never seen. The weights with the best accuracy
are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep.backbones import build_backbone
from firststep.data import Augmentation, Dataset, Draws, Episodes
from firststep.errors import FirststepError
from firststep.evaluation import half_width, to_task
from firststep.evaluation._internal import nearest_means_accuracy
from firststep.network import FunctionalModule
from firststep.training.build import VALIDATION_SEED, choose_device, open_data
from firststep.training.checkpoint import Best, Checkpoint, check_fits
from firststep.training.initial_weights import NETWORK
from firststep.training.pretrain_config import PretrainConfig
from firststep.training.pretrain_record import Pretraining
from firststep.training.schedule import scheduled_rate
from firststep.utils import read_bytes, write_text

MOMENTUM = 0.9


@dataclass(frozen=True, kw_only=True)
class PretrainProgress:
    """The progress that a callback receives after every step.

    Examples:
        >>> from firststep.training import PretrainProgress
        >>> PretrainProgress(epoch=1, epochs=15, step=20, steps=300, loss=2.5).epoch
        1
    """

    epoch: int
    """Epoch, from 1."""
    epochs: int
    step: int
    """Step of this epoch, from 1."""
    steps: int
    loss: float
    """Mean loss over this epoch so far."""
    validation: tuple[float, float] | None = None
    """Accuracy of nearest class means on validation episodes and its half-width, after an epoch."""
    best: float = -1.0


def pretrain(
    config: PretrainConfig | None = None,
    out: str | Path | None = None,
    *,
    resume: str | Path | None = None,
    on_step: Callable[[PretrainProgress], None] | None = None,
    data: Dataset | None = None,
) -> Pretraining:
    """Pretrain into the new folder ``out``, or resume the one in the folder ``resume``.

    Args:
        config: the settings.
        out: folder of the new pretraining; pass it to ``TrainConfig(init=...)``.
        resume: folder of an interrupted one; its own configuration is used.
        on_step: called after every step.
        data: the dataset of ``config``, if it is already open.

    Examples:
        >>> from firststep.training import PretrainConfig, pretrain
        >>> tiny = PretrainConfig(
        ...     filters=4, image_size=16, epochs=1, batch=4096, augment=False, validation_episodes=2
        ... )
        >>> pretrain(tiny, "pretrained").checkpoint_path("best").is_file()
        True
    """
    if (resume is None) == (config is None or out is None):
        raise FirststepError("pretrain needs either a configuration and a folder, or a folder to resume")
    folder = Pretraining(Path(str(out if resume is None else resume)))
    chosen = folder.config if resume is not None else config
    assert chosen is not None
    opened = data or open_data(chosen)
    with ExitStack() as held:
        folder.open(chosen, opened, is_new=resume is None, held=held)
        _Pretraining(folder, chosen, opened, on_step).run_to_end()
    return folder


class _Pretraining:
    def __init__(
        self,
        folder: Pretraining,
        config: PretrainConfig,
        data: Dataset,
        on_step: Callable[[PretrainProgress], None] | None,
    ) -> None:
        self.folder, self.config, self.on_step = folder, config, on_step
        if config.threads:
            torch.set_num_threads(config.threads)
        self.device = choose_device(config.device)
        self.split = data.split("train")
        self.labels = np.repeat(np.arange(len(self.split.classes)), self.split.counts)
        if len(self.labels) < config.batch:
            raise FirststepError(
                f"`batch={config.batch}` is more than the {len(self.labels)} training images of {data.name}"
            )
        self.augment = Augmentation(flip=not data.preprocessing.ink) if config.augment else None
        self.validation = Episodes(
            data.split("val"),
            ways=config.ways,
            shots=config.shots,
            queries=config.queries,
            seed=VALIDATION_SEED,
        )
        # Channels last makes convolutions without second derivatives about a third faster.
        network = _network(config, data, len(self.split.classes)).to(self.device)
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.functional = FunctionalModule(self.network)
        self.optimizer = torch.optim.SGD(
            self.network.parameters(),
            config.rate,
            momentum=MOMENTUM,
            nesterov=True,
            weight_decay=config.weight_decay,
        )
        self.epoch = 0
        self.best: Best = {"accuracy": -1.0, "update": 0}
        self._restore()

    def run_to_end(self) -> None:
        while self.epoch < self.config.epochs:
            loss = self._one_epoch()
            self.epoch += 1
            validation = self._validate()
            is_best = validation[0] > self.best["accuracy"]
            if is_best:
                self.best = {"accuracy": validation[0], "update": self.epoch}
            self._log(loss, *validation)
            if is_best:
                self._checkpoint(momenta=False).save(self.folder.checkpoint_path("best"))
            self._checkpoint(momenta=True).save(self.folder.checkpoint_path("last"))
            self._report(self.epoch, self._steps, loss, validation)

    @property
    def _steps(self) -> int:
        """Return the steps of an epoch; images that do not fill a batch are left out of this epoch."""
        return len(self.labels) // self.config.batch

    def _one_epoch(self) -> float:
        config, losses = self.config, 0.0
        draws = Draws("pretraining", self.split.dataset, config.seed, self.epoch)
        order = np.array(draws.distinct(len(self.labels), len(self.labels)))
        for step in range(self._steps):
            rows = np.sort(order[step * config.batch : (step + 1) * config.batch])
            images, labels = self._batch(rows, draws)
            for group in self.optimizer.param_groups:
                group["lr"] = scheduled_rate(
                    config.rate,
                    "cosine",
                    self.epoch * self._steps + step,
                    total=config.epochs * self._steps,
                )
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.network(images), labels)
            loss.backward()
            if not bool(torch.isfinite(loss)):
                raise FirststepError(
                    f"the loss is not finite in epoch {self.epoch + 1}; a smaller `rate` may help"
                )
            self.optimizer.step()
            losses += loss.item()
            self._report(self.epoch + 1, step + 1, losses / (step + 1))
        return losses / self._steps

    def _batch(self, rows: np.ndarray, draws: Draws) -> tuple[Tensor, Tensor]:
        pixels = self.split.pixels(rows)
        if self.augment is not None:
            pixels = self.augment(pixels, draws)
        images = torch.from_numpy(self.split.preprocessing.normalise(pixels))
        images = images.to(self.device, memory_format=torch.channels_last)
        return images, torch.from_numpy(self.labels[rows]).to(self.device)

    def _validate(self) -> tuple[float, float]:
        tasks = (
            to_task(self.validation[number], self.device) for number in range(self.config.validation_episodes)
        )
        samples = np.array([nearest_means_accuracy(self.functional, task) for task in tasks])
        return float(samples.mean()), float(half_width(samples))

    def _report(
        self, epoch: int, step: int, loss: float, validation: tuple[float, float] | None = None
    ) -> None:
        if self.on_step is not None:
            self.on_step(
                PretrainProgress(
                    epoch=epoch,
                    epochs=self.config.epochs,
                    step=step,
                    steps=self._steps,
                    loss=loss,
                    validation=validation,
                    best=self.best["accuracy"],
                )
            )

    def _log(self, loss: float, accuracy: float, width: float) -> None:
        """Rewrite the whole file: after a kill it may contain an epoch that is now repeated."""
        path = self.folder.metrics_path
        lines = read_bytes(path).decode().splitlines()[: self.epoch - 1] if path.exists() else []
        entry = {
            "epoch": self.epoch,
            "loss": loss,
            "validation_accuracy": accuracy,
            "validation_half_width": width,
        }
        write_text(path, "".join(f"{line}\n" for line in [*lines, json.dumps(entry)]))

    def _checkpoint(self, *, momenta: bool) -> Checkpoint:
        state = {
            f"momentum/{name}": self.optimizer.state[parameter]["momentum_buffer"]
            for name, parameter in self.network.named_parameters()
        }
        return Checkpoint(
            update=self.epoch,
            model={NETWORK + name: value for name, value in self.network.state_dict().items()},
            optimizer=state if momenta else {},
            best=self.best,
        )

    def _restore(self) -> None:
        path = self.folder.checkpoint_path("last")
        if not path.is_file():
            return
        saved = self.folder.load("last", self.device)
        own = {NETWORK + name: value for name, value in self.network.state_dict().items()}
        check_fits(path, own, saved.model)
        momenta = {f"momentum/{name}": value.detach() for name, value in self.network.named_parameters()}
        check_fits(path, momenta, saved.optimizer, "optimiser")
        self.network.load_state_dict(
            {name.removeprefix(NETWORK): value for name, value in saved.model.items()}
        )
        for name, parameter in self.network.named_parameters():
            self.optimizer.state[parameter] = {"momentum_buffer": saved.optimizer[f"momentum/{name}"]}
        self.epoch, self.best = saved.update, saved.best


def _network(config: PretrainConfig, data: Dataset, classes: int) -> nn.Module:
    try:
        return build_backbone(
            config.backbone,
            ways=classes,
            image_size=data.image_size,
            channels=data.channels,
            filters=config.filters,
            generator=torch.Generator().manual_seed(config.seed),
        )
    except ValueError as error:
        raise FirststepError(str(error)) from None
