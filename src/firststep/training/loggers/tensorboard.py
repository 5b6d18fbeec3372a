"""Log to TensorBoard: event files in the run's folder."""

from __future__ import annotations

from collections.abc import Mapping

from firststep.training.loggers.logger import LoggedRun, register_logger


@register_logger("tensorboard")
class _TensorBoard:
    def __init__(self, run: LoggedRun) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._board = SummaryWriter(str(run.folder / "tensorboard"), purge_step=run.start + 1)

    def write(self, update: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._board.add_scalar(name, value, update)

    def close(self) -> None:
        self._board.close()
