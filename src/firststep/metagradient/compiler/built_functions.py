"""Compiled functions by shape, built at their first use, with two fallbacks if compiling fails."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from firststep.allocator import give_back_freed_memory
from firststep.network import missing_derivative

Built = TypeVar("Built")
# Tracing and compiling change settings of the whole process, so only one thread may do it.
_BUILDING = threading.RLock()


@dataclass
class BuiltFunctions:
    """Compiled functions, and the settings that they were compiled with."""

    pairs: dict[Any, Any] = field(default_factory=dict)
    queries: dict[Any, Any] = field(default_factory=dict)
    works: bool = True
    channels_last: bool = True

    def get(self, known: dict[Any, Built], key: Any, build: Callable[[], Built]) -> Built | None:
        """Return the entry of ``known`` at ``key``, built if it is missing; None if building fails."""
        if key in known:
            return known[key]
        with _BUILDING:
            while self.works and key not in known:
                try:
                    known[key] = build()
                    give_back_freed_memory()  # return the compiler's memory before a task needs it
                except Exception as error:
                    if missing_derivative(error) is not None:  # uncompiled code would fail too
                        raise
                    if not self.channels_last:
                        self._stop_compiling(error)
                    self.channels_last = False
                    self._clear()  # compiled for channels-last images, which no longer occur
        return known.get(key)

    def _stop_compiling(self, error: Exception) -> None:
        self.works = False
        self._clear()
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(f"compiling failed, continuing uncompiled ({reason})", RuntimeWarning, stacklevel=6)

    def _clear(self) -> None:
        self.pairs.clear()
        self.queries.clear()
