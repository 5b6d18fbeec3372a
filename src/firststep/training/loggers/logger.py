"""The interface of a logger, and the registry that users can add to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from firststep.errors import FirststepError
from firststep.utils.registry import Registry

NONE = "none"
"""Name that selects no logger."""


@dataclass(frozen=True)
class LoggedRun:
    """The run for which a logger is opened.

    Examples:
        >>> from firststep.training import LoggedRun
        >>> LoggedRun(Path("runs/mine"), {"seed": 0}, 25).name
        'mine'
    """

    folder: Path
    config: Mapping[str, Any]
    """The configuration as JSON values."""
    start: int
    """Last valid update, 0 for a new run. A resumed run logs the updates after it again."""

    @property
    def name(self) -> str:
        return self.folder.resolve().name


class Logger(Protocol):
    """The interface of a logger: it receives the numbers of a training after every validation.

    Examples:
        >>> from firststep.training import Logger
        >>> class Printer:
        ...     def write(self, update, values):
        ...         print(update, values)
        ...     def close(self): ...
        >>> printer: Logger = Printer()
        >>> printer.write(25, {"validation_accuracy/1": 0.9})
        25 {'validation_accuracy/1': 0.9}
    """

    def write(self, update: int, values: Mapping[str, float]) -> None:
        """Log numbers by name. ``validation_accuracy/1`` is a metric after inner step 1."""

    def close(self) -> None:
        """Finish: the training has ended, stopped or failed."""


OpenLogger = Callable[[LoggedRun], Logger]
LOGGERS: Registry[OpenLogger] = Registry("logger")
"""Loggers by name, for ``--log``.

Examples:
    >>> from firststep.training import LOGGERS
    >>> list(LOGGERS)
    ['csv', 'mlflow', 'tensorboard', 'wandb']
"""


def register_logger(name: str) -> Callable[[OpenLogger], OpenLogger]:
    """Register a logger: a class or function that takes a :class:`LoggedRun`, for ``--log NAME``.

    Examples:
        >>> from firststep.training import LOGGERS, register_logger
        >>> @register_logger("lines")
        ... class Lines:
        ...     def __init__(self, run):
        ...         self.path = run.folder / "lines.txt"
        ...     def write(self, update, values):
        ...         with open(self.path, "a") as file:
        ...             print(update, len(values), file=file)
        ...     def close(self): ...
        >>> "lines" in LOGGERS
        True
        >>> LOGGERS.unregister("lines")
    """

    def register(opened: OpenLogger) -> OpenLogger:
        return LOGGERS.register(name, opened)

    return register


def chosen_loggers(log: str) -> tuple[str, ...]:
    """Return the names in a setting such as ``tensorboard,csv``; refuse unknown ones.

    Examples:
        >>> from firststep.training import chosen_loggers
        >>> chosen_loggers("tensorboard,csv"), chosen_loggers("none")
        (('tensorboard', 'csv'), ())
    """
    if log == NONE:
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in log.split(",")))
    for name in names:
        if name not in LOGGERS:
            known = ", ".join((*LOGGERS, NONE))
            raise FirststepError(f"`log` {log}: there is no logger {name!r}; choose from {known}")
    return names
