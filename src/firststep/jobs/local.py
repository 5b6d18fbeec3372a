"""Run jobs on this machine, as many at once as its cores, GPUs and memory allow."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import connection

from firststep.allocator import keep_freed_memory
from firststep.errors import FirststepError
from firststep.jobs.capacity import Allocation, Capacity
from firststep.jobs.execute import execute_job
from firststep.jobs.job import Job, JobEvent, OnEvent
from firststep.training import RunTaken
from firststep.utils import Send, WorkerProcess

POLL_SECONDS = 0.5  # between checks of jobs that another scheduler runs


@dataclass(frozen=True, kw_only=True)
class LocalExecutor:
    """Run each job in a process. Cores and memory are the limits on the CPU; a GPU takes one run.

    Examples:
        >>> from firststep.jobs import LocalExecutor
        >>> LocalExecutor(at_once=2).retries
        1
    """

    at_once: int | None = None
    """Maximum number of jobs at the same time; default as many as fit."""
    retries: int = 1
    """Number of times that a job whose process died is resumed from its last checkpoint."""
    share_cores: bool = False
    """Whether to start more jobs than there are cores, if memory allows.

    Three jobs of one thread on two cores then take 1.5 times as long as one, instead of twice."""

    def __post_init__(self) -> None:
        if self.at_once is not None and self.at_once < 1:
            raise FirststepError(f"`at_once` must be at least 1, not {self.at_once}")

    def run(self, jobs: Sequence[Job], on_event: OnEvent) -> None:
        scheduler = _Scheduler(self, jobs, on_event)
        try:
            scheduler.run()
        except BaseException:  # Ctrl-C, or an error in on_event: leave no process behind
            scheduler.stop()
            raise


def run_in_worker(send: Send, job: Job, threads: int, visible_device: str | None) -> None:
    """Execute a job in a worker process; ``visible_device`` is the only GPU that it sees, None for all."""
    if visible_device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible_device  # before CUDA is initialised
    keep_freed_memory()  # the process is ours
    send(execute_job(job, send, threads))


class _Scheduler:
    def __init__(self, executor: LocalExecutor, jobs: Sequence[Job], on_event: OnEvent) -> None:
        self.on_event = on_event
        at_once = min(executor.at_once or len(jobs), len(jobs))
        self.capacity = Capacity(at_once, share_cores=executor.share_cores)
        # Runs that do not set their threads share the cores; with many runs one thread each is fastest.
        self.threads = max(1, self.capacity.cores // at_once)
        self.queue = list(jobs)
        self.retries = {job.name: executor.retries for job in jobs}
        self.workers: dict[WorkerProcess, tuple[Job, Allocation]] = {}
        self.finished: set[str] = set()

    def run(self) -> None:
        while self.queue or self.workers:
            self._start_what_fits()
            if self.workers:
                self._receive()
            elif self.queue:
                time.sleep(POLL_SECONDS)  # another scheduler has all that is left

    def stop(self) -> None:
        """Make all workers save and stop; a second interrupt kills them."""
        self.queue.clear()
        self.retries.clear()
        try:
            for worker in self.workers:
                worker.terminate()
            for job, _ in self.workers.values():
                self.on_event(JobEvent(job=job.name, state="waiting", text="saves and stops"))
            while self.workers:
                self._receive()
        finally:
            for worker in self.workers:
                worker.kill()

    def _start_what_fits(self) -> None:
        for job in list(self.queue):
            if _is_elsewhere(job):
                continue
            allocation = self.capacity.acquire(job.config)
            if allocation is None:
                return  # keep the order, or small jobs could delay a large one forever
            self.queue.remove(job)
            if self._is_finished(job):
                self.capacity.release(allocation)
            else:
                worker = WorkerProcess(
                    run_in_worker, job, self.threads, allocation.visible_device, name=job.name
                )
                self.workers[worker] = job, allocation

    def _is_finished(self, job: Job) -> bool:
        """Return whether another scheduler has finished the job meanwhile, or it has failed."""
        try:
            if job.is_done():
                self._report(JobEvent(job=job.name, state="skipped", text="done elsewhere"))
        except FirststepError as error:
            self._report(JobEvent(job=job.name, state="failed", text=str(error)))
        return job.name in self.finished

    def _receive(self) -> None:
        by_pipe = {worker.messages: worker for worker in self.workers}
        for pipe in connection.wait(list(by_pipe), POLL_SECONDS):
            worker = by_pipe[pipe]  # type: ignore[index]
            event = worker.receive()
            if event is not None:
                self._report(event)
            else:
                job, allocation = self.workers.pop(worker)
                self.capacity.release(allocation)
                if job.name not in self.finished:
                    self._retry_or_fail(job, worker.exit_reason())

    def _retry_or_fail(self, job: Job, reason: str) -> None:
        left = self.retries.get(job.name)
        if left is None:
            return  # it was asked to stop
        if left > 0:
            self.retries[job.name] = left - 1
            self.queue.append(job)  # last: there may be more free memory by then
            text = f"{reason}; it will be resumed from its last checkpoint"
            self._report(JobEvent(job=job.name, state="waiting", text=text))
        else:
            text = f"{reason}; the same command resumes it"
            self._report(JobEvent(job=job.name, state="failed", text=text))

    def _report(self, event: JobEvent) -> None:
        if event.is_final:
            self.finished.add(event.job)
        self.on_event(event)


def _is_elsewhere(job: Job) -> bool:
    """Return whether another process has the job now; then other jobs go first."""
    if not job.folder.is_dir():
        return False
    try:
        with job.run.lock():
            return False
    except RunTaken:
        return True
