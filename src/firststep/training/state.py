"""The state of a meta-training, as stored in a checkpoint: parameters, average, Adam's moments, best."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import Tensor

from firststep.errors import FirststepError
from firststep.evaluation import METRICS
from firststep.evaluation._internal import MAIN
from firststep.meta_learner import MetaLearner
from firststep.network import Params
from firststep.training.averaging import WeightAverage
from firststep.training.checkpoint import Best, Checkpoint, check_fits
from firststep.training.config import TrainConfig
from firststep.training.schedule import scheduled_rate

MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""Adam's state per parameter."""
DEFAULT_WEIGHT_DECAY = 0.01
"""Default weight decay of AdamW."""


class TrainingState:
    """The state after ``update`` meta-updates, equal on every rank."""

    def __init__(self, meta: MetaLearner, config: TrainConfig) -> None:
        self.meta, self.config = meta, config
        self.optimizer = _optimizer(list(self._parameters().values()), config)
        self.average = None if config.ema is None else WeightAverage(self._parameters(), config.ema)
        self.update = 0
        metric = METRICS[MAIN[meta.kind]]
        self.sign = 1 if metric.higher_is_better else -1
        """Sign that turns the main metric into a score for which higher is better."""
        self.best: Best = {"accuracy": -1.0 if self.sign > 0 else -sys.float_info.max, "update": 0}

    @property
    def best_value(self) -> float:
        """Return the main metric of the best validation so far."""
        return self.sign * self.best["accuracy"]

    def step(self, gradients: Params) -> Tensor:
        """Take one meta-update, given gradients by parameter name; return the gradients' norm."""
        parameters, config = self._parameters(), self.config
        for name, parameter in parameters.items():
            parameter.grad = gradients[name]
        norm = torch.nn.utils.get_total_norm(list(gradients.values()))
        if config.clip_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(parameters.values(), config.clip_norm, norm)
        for group in self.optimizer.param_groups:
            group["lr"] = scheduled_rate(
                config.outer_rate,
                config.schedule,
                self.update,
                total=config.total_updates,
                warmup=config.warmup,
            )
        self.optimizer.step()
        if self.average is not None:
            self.average.add(parameters, self.update)
        self.update += 1
        return norm

    def averaged(self) -> AbstractContextManager[None]:
        """Return a context in which the meta-learner has the averaged weights."""
        return nullcontext() if self.average is None else self.average.in_place_of(self._parameters())

    def checkpoint(self, *, optimizer: bool) -> Checkpoint:
        """Return a checkpoint: to resume from, or for use only, without the optimiser's state."""
        moments = {
            f"{kind}/{name}": value
            for name, parameter in self._parameters().items()
            for kind, value in self.optimizer.state[parameter].items()
        }
        return Checkpoint(
            update=self.update,
            model=self.meta.state_dict(),
            optimizer=moments if optimizer else {},
            best=self.best,
            average=self.average.weights if self.average is not None and optimizer else {},
        )

    def restore(self, saved: Checkpoint, path: Path) -> None:
        """Restore a checkpoint that was read from ``path``."""
        check_fits(path, self.meta.state_dict(), saved.model)
        self.meta.load_state_dict(saved.model)
        for name, parameter in self._parameters().items():
            moments = {
                kind: saved.optimizer[f"{kind}/{name}"]
                for kind in MOMENTS
                if f"{kind}/{name}" in saved.optimizer
            }
            if len(moments) < len(MOMENTS):
                raise FirststepError(f"{path} lacks the optimiser's state for {name}")
            for kind, value in moments.items():
                shape, dtype = ((), torch.float32) if kind == "step" else (parameter.shape, parameter.dtype)
                if value.shape != shape or value.dtype != dtype:
                    raise FirststepError(
                        f"{path}: the optimiser's {kind} of {name} has another shape or type"
                    )
            # Adam counts its steps on the CPU, whatever the device of the parameters.
            self.optimizer.state[parameter] = {
                kind: value.cpu() if kind == "step" else value.to(parameter.device)
                for kind, value in moments.items()
            }
        if self.average is not None:
            check_fits(path, self.average.weights, saved.average, "average")
            self.average.weights = {name: value.to(self.meta.device) for name, value in saved.average.items()}
        self.update = saved.update
        self.best = saved.best

    def _parameters(self) -> dict[str, torch.nn.Parameter]:
        return {name: value for name, value in self.meta.named_parameters() if value.requires_grad}


def _optimizer(parameters: list[torch.nn.Parameter], config: TrainConfig) -> torch.optim.Optimizer:
    if config.optimizer == "adam":
        return torch.optim.Adam(parameters, config.outer_rate)
    decay = DEFAULT_WEIGHT_DECAY if config.weight_decay is None else config.weight_decay
    return torch.optim.AdamW(parameters, config.outer_rate, weight_decay=decay)
