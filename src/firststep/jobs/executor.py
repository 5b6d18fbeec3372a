"""Where jobs are executed: the interface, and its simplest implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from firststep.jobs.execute import execute_job
from firststep.jobs.job import Job, OnEvent


class Executor(Protocol):
    def run(self, jobs: Sequence[Job], on_event: OnEvent) -> None:
        """Execute every job; the last event of each is final (:attr:`JobEvent.is_final`).

        After an interrupt (``KeyboardInterrupt``), workers save and stop before it is raised again.
        """
        ...


class InlineExecutor:
    """One job after another in this process: for debuggers, and for jobs shorter than a process's start."""

    def run(self, jobs: Sequence[Job], on_event: OnEvent) -> None:
        for job in jobs:
            on_event(execute_job(job, on_event, torch.get_num_threads()))
