"""The logs of a run: JSON lines for programs, TensorBoard for eyes."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from firststep.training.run import Run


class MetricsLog:
    """Appends a line for each logged update; scalars and per-step lists."""

    def __init__(self, run: Run, start: int) -> None:
        """``start`` is the last update that is kept: what TensorBoard has beyond it is void."""
        run.keep_metrics_until(start)
        self._file = open(run.metrics_path, "a", encoding="utf-8")  # noqa: SIM115 (closed in __exit__)
        self._board = SummaryWriter(str(run.folder / "tensorboard"), purge_step=start + 1)

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._board.close()

    def write(self, update: int, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps({"update": update, **entry}) + "\n")
        self._file.flush()
        for name, value in entry.items():
            if isinstance(value, list):
                for index, item in enumerate(value):
                    self._board.add_scalar(f"{name}/{index}", item, update)
            elif isinstance(value, int | float):
                self._board.add_scalar(name, value, update)
