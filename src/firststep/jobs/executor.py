"""Where jobs are carried out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from firststep.jobs.job import Job, Tell


class Executor(Protocol):
    def run(self, jobs: Sequence[Job], tell: Tell) -> None:
        """Carry out every job; the last report of each is ``done``, ``was done`` or ``failed``.

        Where it is interrupted (``KeyboardInterrupt``), workers save and stop before it is raised again.
        """
        ...
