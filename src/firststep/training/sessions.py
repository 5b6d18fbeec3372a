"""Training time of a run, as one session per process that trained it.

Sessions have their own file, since all other files are identical for interrupted and uninterrupted runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from firststep.training.provenance import hardware
from firststep.utils import read_record, write_json

FILE = "sessions.json"


@dataclass(frozen=True)
class TrainingTime:
    """Seconds of training over all sessions of a run, which may have been stopped and resumed.

    Examples:
        >>> from firststep.training import TrainingTime
        >>> TrainingTime(seconds=90.0, sessions=2, killed=1).sessions
        2
    """

    seconds: float
    sessions: int
    killed: int
    """Number of killed sessions, whose time is unknown."""

    def __str__(self) -> str:
        text = f"{self.seconds:.0f} s" if self.seconds < 600 else f"{self.seconds / 3600:.1f} h"
        return f"at least {text}" if self.killed else text


@contextmanager
def timed(folder: Path, device: str) -> Iterator[None]:
    """Record the start of a session, and its duration at the end."""
    path = folder / FILE
    before = _sessions(path)
    session = _Session(machine=hardware(device))
    _write(path, [*before, session])
    start = time.monotonic()
    try:
        yield
    finally:
        _write(path, [*before, replace(session, seconds=round(time.monotonic() - start, 1))])


def training_time(folder: Path) -> TrainingTime | None:
    """Return the training time of a run; None without a record of sessions.

    Examples:
        >>> from firststep.training import training_time
        >>> training_time(run.folder).sessions
        1
    """
    sessions = _sessions(folder / FILE)
    if not sessions:
        return None
    known = [session.seconds for session in sessions if session.seconds is not None]
    return TrainingTime(sum(known), len(sessions), len(sessions) - len(known))


def open_since(folder: Path) -> float | None:
    """Return when the last session began, in seconds since 1970; None if it has ended."""
    path = folder / FILE
    sessions = _sessions(path)
    if not sessions or sessions[-1].seconds is not None:
        return None
    return path.stat().st_mtime  # the file is written at the start and end of a session


@dataclass(frozen=True)
class _Session:
    machine: str
    seconds: float | None = None


def _sessions(path: Path) -> list[_Session]:
    return read_record(path, list[_Session]) if path.exists() else []


def _write(path: Path, sessions: list[_Session]) -> None:
    write_json(path, [asdict(session) for session in sessions])
