"""The interface of executors, and the simplest one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from firststep.jobs.execute import execute_job
from firststep.jobs.job import Job, OnEvent


class Executor(Protocol):
    """An object that runs jobs: ``InlineExecutor``, ``LocalExecutor``, ``RayExecutor``, or your own.

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
    """Run jobs one after another in this process: for debuggers and for very short jobs.

    Examples:
        >>> from firststep.jobs import InlineExecutor, Job, run_jobs
        >>> run_jobs([Job(name="done before", config=run.config, folder=run.folder)], InlineExecutor())
        {}
    """

    def run(self, jobs: Sequence[Job], on_event: OnEvent) -> None:
        for job in jobs:
            on_event(execute_job(job, on_event, torch.get_num_threads()))
