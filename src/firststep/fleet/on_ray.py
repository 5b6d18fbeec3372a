"""Jobs on a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firststep.fleet.job import Job, Tell


@dataclass(frozen=True, kw_only=True)
class RayExecutor:
    address: str | None = None

    def run(self, jobs: Sequence[Job], tell: Tell) -> None:
        raise NotImplementedError
