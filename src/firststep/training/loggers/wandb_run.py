"""Log to Weights & Biases; its variables, such as ``WANDB_PROJECT`` and ``WANDB_MODE``, apply."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping

from firststep.training.loggers.logger import LoggedRun, register_logger
from firststep.training.loggers.remembered import remembered
from firststep.utils.extras import extra

UPDATE = "update"
"""The x-axis: wandb's own step cannot log an update again, as a resumed run may."""


@register_logger("wandb")
class _Wandb:
    def __init__(self, run: LoggedRun) -> None:
        with extra("wandb", "--log wandb"):
            import wandb
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "firststep"),
            name=run.name,
            id=remembered(run.folder / "wandb-run.txt", lambda: secrets.token_hex(4)),
            resume="allow",
            dir=run.folder,
            config=dict(run.config),
        )
        self._run.define_metric(UPDATE)
        self._run.define_metric("*", step_metric=UPDATE)

    def write(self, update: int, values: Mapping[str, float]) -> None:
        self._run.log({UPDATE: update, **values})

    def close(self) -> None:
        self._run.finish()
