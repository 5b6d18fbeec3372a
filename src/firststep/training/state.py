"""What meta-training changes, and a checkpoint holds: parameters, Adam's moments, the best validation."""

from __future__ import annotations

from pathlib import Path

import torch

from firststep.errors import FirststepError
from firststep.meta_learner import MetaLearner
from firststep.network import Params
from firststep.training.checkpoint import Best, Checkpoint, check_fits

MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""What Adam keeps for each parameter."""


class TrainingState:
    """The state after ``update`` meta-updates; the same on every rank."""

    def __init__(self, meta: MetaLearner, outer_rate: float) -> None:
        self.meta = meta
        self.optimiser = torch.optim.Adam(self._parameters().values(), outer_rate)
        self.update = 0
        self.best: Best = {"accuracy": -1.0, "update": 0}

    def step(self, gradients: Params) -> None:
        """One meta-update; gradients by the names of the meta-learner's parameters."""
        for name, parameter in self._parameters().items():
            parameter.grad = gradients[name]
        self.optimiser.step()
        self.update += 1

    def checkpoint(self, *, optimiser: bool) -> Checkpoint:
        """To continue from; without the optimiser's state only to be used."""
        moments = {
            f"{kind}/{name}": value
            for name, parameter in self._parameters().items()
            for kind, value in self.optimiser.state[parameter].items()
        }
        return Checkpoint(
            update=self.update,
            model=self.meta.state_dict(),
            optimiser=moments if optimiser else {},
            best=self.best,
        )

    def restore(self, saved: Checkpoint, path: Path) -> None:
        """Return to a checkpoint, which was read from ``path``."""
        check_fits(path, self.meta.state_dict(), saved.model)
        self.meta.load_state_dict(saved.model)
        for name, parameter in self._parameters().items():
            moments = {
                kind: saved.optimiser[f"{kind}/{name}"]
                for kind in MOMENTS
                if f"{kind}/{name}" in saved.optimiser
            }
            if len(moments) < len(MOMENTS):
                raise FirststepError(f"{path} lacks the optimiser's state for {name}")
            for kind, value in moments.items():
                shape, dtype = ((), torch.float32) if kind == "step" else (parameter.shape, parameter.dtype)
                if value.shape != shape or value.dtype != dtype:
                    raise FirststepError(
                        f"{path}: the optimiser's {kind} of {name} has another shape or type"
                    )
            # Adam counts its steps on the CPU, whatever device the parameters are on.
            self.optimiser.state[parameter] = {
                kind: value.cpu() if kind == "step" else value.to(parameter.device)
                for kind, value in moments.items()
            }
        self.update = saved.update
        self.best = saved.best

    def _parameters(self) -> dict[str, torch.nn.Parameter]:
        return {name: value for name, value in self.meta.named_parameters() if value.requires_grad}
