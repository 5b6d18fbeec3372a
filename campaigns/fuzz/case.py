"""One hostile input: what is called, in which surroundings, and what it may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

from campaigns.stock import Stock
from campaigns.warm import Stream

Expected = Literal["any", "good", "bad"]


@dataclass(kw_only=True)
class Case:
    """Made by a generator from a seed alone; its files are below ``Sandbox.work``."""

    what: str
    """the case in a line"""
    arguments: list[str] | None = None
    """a command line of firststep, ..."""
    call: Callable[[], object] | None = None
    """... or a call of the library"""
    finite: bool = True
    """whether NaN and infinity in the output break a promise"""
    expected: Expected = "any"
    """good: must work; bad: must be refused"""
    writes: tuple[str, ...] = ()
    """files and folders in ``work`` that may appear or be replaced: what the command is asked to write"""
    environment: dict[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    stdout: Stream = "kept"
    stderr: Stream = "kept"
    encoding: str = "utf-8"
    before: Callable[[], None] | None = None
    statuses: tuple[int, ...] = (0, 2)
    seconds: float = 60.0
    """time limit; a case takes a fraction of a second, many times as long where the cores are shared"""


@dataclass(frozen=True)
class Sandbox:
    """The folder of a case, and the stock that it may read."""

    folder: Path
    stock: Stock

    @property
    def work(self) -> Path:
        """Return the working folder, three levels deep, so that files outside it are noticed too."""
        return self.folder / "a" / "b" / "desk"


Generator = Callable[[Random, Sandbox], Case]
