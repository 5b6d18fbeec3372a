"""What meta-training changes, and a checkpoint holds: parameters, Adam's moments, the best validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from firststep.network import Params
from firststep.training.checkpoint import Checkpoint, check_fits
from firststep.training.optimiser import optimiser_state, restore_optimiser
from firststep.training.setup import Setup


class State:
    """The state after ``update`` meta-updates; the same on every rank."""

    def __init__(self, setup: Setup) -> None:
        self.params, self.own = setup.initial()
        self.named: Params = {f"params/{n}": v for n, v in self.params.items()} | {
            f"own/{n}": v for n, v in self.own.items()
        }
        self.optimiser = torch.optim.Adam(list(self.named.values()), setup.config.outer_rate)
        self.update = 0
        self.best: dict[str, Any] = {"accuracy": -1.0, "update": 0}

    def step(self, gradients: Params) -> None:
        """One meta-update; gradients are named as in ``named``."""
        for name, value in self.named.items():
            value.grad = gradients[name]
        self.optimiser.step()
        self.update += 1

    def checkpoint(self, *, optimiser: bool) -> Checkpoint:
        """To go on from, or without the optimiser's state only to be used."""
        return Checkpoint(
            update=self.update,
            params=self.params,
            own=self.own,
            optimiser=optimiser_state(self.optimiser, self.named) if optimiser else {},
            facts={"best": self.best},
        )

    def restore(self, saved: Checkpoint, path: Path) -> None:
        """Go back to a checkpoint, which was read from ``path``."""
        check_fits(path, self.params, saved.params, "network")
        check_fits(path, self.own, saved.own, "method")
        for mine, theirs in ((self.params, saved.params), (self.own, saved.own)):
            for name, value in mine.items():
                value.copy_(theirs[name])
        restore_optimiser(self.optimiser, self.named, saved.optimiser)
        self.update = saved.update
        self.best = saved.facts["best"]
