"""Jobs on this machine, as many at once as its cores, GPUs and memory allow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import connection

from firststep.errors import FirststepError
from firststep.jobs.capacity import Capacity, Share
from firststep.jobs.job import Job, Report, Tell
from firststep.jobs.worker import Worker
from firststep.training.run import RunTaken

LOOK_AGAIN = 0.5  # seconds between looks at jobs that another planner has


@dataclass(frozen=True, kw_only=True)
class LocalExecutor:
    """One process a job. On the CPU the limits are cores and memory; on GPUs it is one run each."""

    at_once: int | None = None
    """At most so many at once; default as many as fit."""
    retries: int = 1
    """How often a job whose process died goes on from its last checkpoint."""

    def __post_init__(self) -> None:
        if self.at_once is not None and self.at_once < 1:
            raise FirststepError(f"--at-once must be at least 1, not {self.at_once}")

    def run(self, jobs: Sequence[Job], tell: Tell) -> None:
        planner = _Planner(self, jobs, tell)
        try:
            planner.run()
        except BaseException:  # Ctrl-C, or a watcher that failed: leave nobody behind
            planner.stop()
            raise


class _Planner:
    def __init__(self, executor: LocalExecutor, jobs: Sequence[Job], tell: Tell) -> None:
        self.tell = tell
        at_once = min(executor.at_once or len(jobs), len(jobs))
        self.capacity = Capacity(at_once)
        # Runs that leave their threads open share the cores; with many runs one thread each is fastest.
        self.threads = max(1, self.capacity.cores // at_once)
        self.queue = list(jobs)
        self.retries = {job.name: executor.retries for job in jobs}
        self.workers: dict[Worker, Share] = {}
        self.over: set[str] = set()

    def run(self) -> None:
        while self.queue or self.workers:
            self._start_what_fits()
            if self.workers:
                self._listen()
            elif self.queue:
                time.sleep(LOOK_AGAIN)  # all that is left is with another planner

    def stop(self) -> None:
        """All save and stop; a second interrupt ends them at once."""
        self.queue.clear()
        self.retries.clear()
        try:
            for worker in self.workers:
                worker.ask_to_stop()
            for worker in self.workers:
                self.tell(Report(job=worker.job.name, state="waiting", text="saves and stops"))
            while self.workers:
                self._listen()
        finally:
            for worker in self.workers:
                worker.process.kill()

    def _start_what_fits(self) -> None:
        for job in list(self.queue):
            if _is_elsewhere(job):
                continue
            share = self.capacity.lend(job.config)
            if share is None:
                return  # in order: a large job is not overtaken for ever
            self.queue.remove(job)
            if self._is_over(job):
                self.capacity.take_back(share)
            else:
                self.workers[Worker(job, self.threads, share.sees)] = share

    def _is_over(self, job: Job) -> bool:
        """Whether another planner has done it meanwhile, or it cannot be done."""
        try:
            if job.is_done():
                self._tell(Report(job=job.name, state="was done"))
        except FirststepError as error:
            self._tell(Report(job=job.name, state="failed", text=str(error)))
        return job.name in self.over

    def _listen(self) -> None:
        by_pipe = {worker.reports: worker for worker in self.workers}
        for pipe in connection.wait(list(by_pipe), LOOK_AGAIN):
            worker = by_pipe[pipe]  # type: ignore[index]
            report = worker.read()
            if report is not None:
                self._tell(report)
            else:
                self.capacity.take_back(self.workers.pop(worker))
                if worker.job.name not in self.over:
                    self._died(worker)

    def _died(self, worker: Worker) -> None:
        job, why = worker.job, worker.why_it_died()
        left = self.retries.get(job.name)
        if left is None:
            return  # it was asked to stop
        if left > 0:
            self.retries[job.name] = left - 1
            self.queue.append(job)  # last: what others took of the memory may be free by then
            self._tell(Report(job=job.name, state="waiting", text=f"{why}; goes on from its last checkpoint"))
        else:
            self._tell(Report(job=job.name, state="failed", text=f"{why}; the same command goes on"))

    def _tell(self, report: Report) -> None:
        if report.state in ("done", "was done", "failed"):
            self.over.add(report.job)
        self.tell(report)


def _is_elsewhere(job: Job) -> bool:
    """Whether another process trains or tests it: others first, then it is usually done."""
    if not job.folder.is_dir():
        return False
    try:
        with job.run.lock():
            return False
    except RunTaken:
        return True
