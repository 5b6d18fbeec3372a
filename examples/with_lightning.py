"""MetaLearner in PyTorch Lightning: a module, and a callback that logs the condition number and every step.

Lightning's own loop, optimiser step, loggers and checkpoints. Run: python examples/with_lightning.py
"""

from __future__ import annotations

import tempfile
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor

import firststep as fs
from task_loader import accuracies, make_learner, task_loader


class MetaModule(lightning.LightningModule):
    """The outer loop: ``meta(tasks)`` is the loss, and Lightning calls ``backward()`` on it."""

    def __init__(self, meta: fs.MetaLearner, rate: float = 3e-3) -> None:
        super().__init__()
        self.meta, self.rate = meta, rate

    def training_step(self, tasks: list[fs.Task], index: int) -> Tensor:
        loss: Tensor = self.meta(tasks)
        self.log("loss", loss, batch_size=len(tasks))
        return loss

    def validation_step(self, tasks: list[fs.Task], index: int) -> None:
        """Do nothing: the callback measures everything."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), self.rate)

    def transfer_batch_to_device(self, tasks: Any, device: torch.device, index: int) -> Any:
        return [task.to(device) for task in tasks]  # Lightning does not look into a Task


class FirstStep(lightning.Callback):
    """Logs the accuracy after every inner step and the mean log10 condition number of validation tasks."""

    def on_validation_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        assert isinstance(pl_module, MetaModule)
        meta, size = pl_module.meta, len(batch)
        for step, value in enumerate(accuracies(meta, batch)):
            pl_module.log(f"accuracy/{step}", value, batch_size=size)
        kappas = [meta.condition_number(task.support_x, task.support_y).log10() for task in batch]
        pl_module.log("log10_condition_number", torch.stack(kappas).mean().float(), batch_size=size)


def main(updates: int = 30) -> dict[str, float]:
    module = MetaModule(make_learner())
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_steps=updates,
            accelerator="cpu",
            callbacks=[FirstStep()],
            gradient_clip_val=10.0,
            default_root_dir=folder,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            # Lightning validates under inference_mode, in which nothing can be adapted.
            inference_mode=False,
        )
        trainer.fit(module, task_loader("train", 4 * updates), task_loader("val", 20))
    found = {name: float(value) for name, value in trainer.callback_metrics.items()}
    for name, value in sorted(found.items()):
        print(f"{name}: {value:.3f}")
    return found


if __name__ == "__main__":
    main()
