"""Where jobs are executed: the interface, and its simplest implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from firststep.jobs.execute import execute_job
from firststep.jobs.job import Job, OnEvent


class Executor(Protocol):
    """What runs jobs: ``InlineExecutor``, ``LocalExecutor``, ``RayExecutor``, or one of your own.

    Examples:
        >>> from firststep.jobs import Executor, InlineExecutor
        >>> executor: Executor = InlineExecutor()
    """

    def run(self, jobs: Sequence[Job], on_event: OnEvent) -> None:
        """Execute every job; the last event of each is final (:attr:`JobEvent.is_final`).

        After an interrupt (``KeyboardInterrupt``), workers save and stop before it is raised again.
        """
        ...


class InlineExecutor:
    """One job after another in this process: for debuggers, and for jobs shorter than a process's start.

    Examples:
        >>> from firststep.jobs import InlineExecutor, Job, run_jobs
        >>> run_jobs([Job(name="done before", config=run.config, folder=run.folder)], InlineExecutor())
        {}
    """

    def run(self, jobs: Sequence[Job], on_event: OnEvent) -> None:
        for job in jobs:
            on_event(execute_job(job, on_event, torch.get_num_threads()))
