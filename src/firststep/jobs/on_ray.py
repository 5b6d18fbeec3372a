"""Jobs on a Ray cluster: every run is a task with stated needs, which Ray places and starts again.

The run folders must be on a file system that all nodes share: there are the checkpoints from which a task
goes on when its worker or node has died, and the locks that keep two tasks out of one run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from firststep.allocator import keep_freed_memory
from firststep.jobs.job import Job, Report, Tell
from firststep.jobs.needs import Needs, needs
from firststep.jobs.ray_cluster import connection, import_ray, report_queue
from firststep.jobs.ray_notices import without_notices
from firststep.jobs.work import carry_out

LISTEN_EVERY = 0.3  # seconds
TIME_TO_SAVE = 60.0  # seconds that workers have after an interrupt


@dataclass(frozen=True)
class RayExecutor:
    """Each job as a Ray task.

    A connection that the program has already made (``ray.init``) is used and left open.
    """

    address: str | None = None
    """Of the cluster: ``auto``, ``host:port`` or ``ray://host:port``; default Ray's own choice, which is
    RAY_ADDRESS, a cluster that runs on this machine, or a new one of this machine alone."""
    retries: int = 3
    """How often a job whose worker or node died goes on from its last checkpoint."""

    def __post_init__(self) -> None:
        import_ray()  # says at once if it is not there

    def run(self, jobs: Sequence[Job], tell: Tell) -> None:
        ray = import_ray()
        with without_notices(), connection(ray, self.address), report_queue(ray) as reports:
            tasks = self._submit(ray, jobs, reports, tell)
            try:
                while tasks:
                    ready, _ = ray.wait(list(tasks), timeout=LISTEN_EVERY)
                    with suppress(ray.exceptions.RayError):  # a report may be lost, a result is not
                        _pass_on(reports.get_nowait_batch(reports.qsize()), tasks.values(), tell)
                    for task in ready:
                        tell(_outcome(ray, tasks.pop(task), task))
            except BaseException:  # Ctrl-C, or a watcher that failed: leave nobody behind
                for task in tasks:
                    ray.cancel(task)  # what a running task sees as Ctrl-C: it saves and stops
                if tasks:
                    ray.wait(list(tasks), num_returns=len(tasks), timeout=TIME_TO_SAVE)
                raise

    def _submit(self, ray: Any, jobs: Sequence[Job], reports: Any, tell: Tell) -> dict[Any, Job]:
        has_gpus = ray.cluster_resources().get("GPU", 0) > 0
        # A process of its own for each: what one leaves in memory is no burden for the next.
        remote = ray.remote(max_calls=1)(_task)
        tasks = {}
        for job in jobs:
            need = needs(job.config, gpu=has_gpus)
            if job.config.device != "auto" and torch.device(job.config.device).index:
                text = f"--device {job.config.device}: Ray chooses the GPU itself; use --device cuda"
                tell(Report(job=job.name, state="failed", text=text))
                continue
            if not any(_has_room(node, need) for node in ray.nodes()):
                tell(Report(job=job.name, state="waiting", text=f"no node has {_words(need)} yet"))
            options = remote.options(
                name=job.name,
                num_cpus=need.cpus,
                num_gpus=need.gpus,
                memory=need.memory_bytes,
                max_retries=self.retries,
            )
            tasks[options.remote(job, reports, need.cpus)] = job
        return tasks


def _task(job: Job, reports: Any, threads: int) -> Report:
    ray = import_ray()

    def send(report: Report) -> None:
        with suppress(ray.exceptions.RayError):
            reports.put_nowait(report)

    keep_freed_memory()  # the process is ours
    return carry_out(job, send, threads)


def _pass_on(reports: Iterable[Report], jobs: Iterable[Job], tell: Tell) -> None:
    running = {job.name for job in jobs}
    for report in reports:
        if report.job in running:
            tell(report)


def _outcome(ray: Any, job: Job, task: Any) -> Report:
    try:
        report: Report = ray.get(task)
        return report
    except ray.exceptions.RayError as error:  # the worker or its node died once too often
        reason = next((line for line in str(error).splitlines() if line.strip()), "")
        return Report(job=job.name, state="failed", text=f"{type(error).__name__}: {reason}")


def _has_room(node: dict[str, Any], need: Needs) -> bool:
    """Whether a node could take the job when nothing else runs there."""
    has = node["Resources"]
    wanted = {"CPU": need.cpus, "GPU": need.gpus, "memory": need.memory_bytes}
    return node["Alive"] and all(has.get(name, 0) >= value for name, value in wanted.items())


def _words(need: Needs) -> str:
    gpu = ", a GPU" if need.gpus else ""
    return f"{need.cpus} CPUs{gpu} and {need.memory_bytes / 2**30:.1f} GB"
