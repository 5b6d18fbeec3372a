"""How long a run was trained: a session for each process that worked on it.

In a file of its own, because all else in a run's folder is the same whether it was interrupted or not.
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
    """Sessions that were killed: their time is not known."""

    def __str__(self) -> str:
        text = f"{self.seconds:.0f} s" if self.seconds < 600 else f"{self.seconds / 3600:.1f} h"
        return f"at least {text}" if self.killed else text


@contextmanager
def timed(folder: Path, device: str) -> Iterator[None]:
    """Record that a session began, and at its end how long it was."""
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
    """None for a run without a record of its sessions.

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
    """When the last session began, in seconds since 1970, if it has not ended: it goes on, or was killed."""
    path = folder / FILE
    sessions = _sessions(path)
    if not sessions or sessions[-1].seconds is not None:
        return None
    return path.stat().st_mtime  # it is written when a session begins, and not again before it ends


@dataclass(frozen=True)
class _Session:
    machine: str
    seconds: float | None = None


def _sessions(path: Path) -> list[_Session]:
    return read_record(path, list[_Session]) if path.exists() else []


def _write(path: Path, sessions: list[_Session]) -> None:
    write_json(path, [asdict(session) for session in sessions])
