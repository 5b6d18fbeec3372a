"""The logs of a run: JSON lines for our own commands, and the loggers that the run names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

from firststep.errors import FirststepError, reason
from firststep.training.config import TrainConfig
from firststep.training.loggers import LOGGERS, LoggedRun, Logger, chosen_loggers
from firststep.training.run import Run


class MetricsLog:
    """Append one line per logged update, with scalars and per-step lists."""

    def __init__(self, run: Run, config: TrainConfig, start: int) -> None:
        """Open the logs and drop everything after update ``start``."""
        run.keep_metrics_until(start)
        logged = LoggedRun(run.folder, config.to_json(), start)
        self._loggers: dict[str, Logger] = {}
        with ExitStack() as opened:
            self._file = opened.enter_context(open(run.metrics_path, "a", encoding="utf-8"))
            for name in chosen_loggers(config.log):
                with _naming(name):
                    self._loggers[name] = LOGGERS[name](logged)
                opened.callback(self._close, name)
            self._opened = opened.pop_all()

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def write(self, update: int, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps({"update": update, **entry}) + "\n")
        self._file.flush()
        values = dict(_numbers(entry))
        for name, logger in self._loggers.items():
            with _naming(name):
                logger.write(update, values)

    def _close(self, name: str) -> None:
        with _naming(name):
            self._loggers[name].close()


def _numbers(entry: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield every number by name; list items by name and inner step, such as ``validation_accuracy/1``."""
    for name, value in entry.items():
        if isinstance(value, list):
            yield from ((f"{name}/{step}", item) for step, item in enumerate(value))
        elif isinstance(value, int | float):
            yield name, value


@contextmanager
def _naming(logger: str) -> Iterator[None]:
    """Name the logger in the error: otherwise it could seem to come from the network or the user's code."""
    try:
        yield
    except (FirststepError, OSError):
        raise
    except Exception as error:
        raise FirststepError(
            f"the logger {logger} failed ({reason(error)}); train without it: leave it out of `log`"
        ) from error
