"""Run jobs on a Ray cluster: every run is a task with stated resources, which Ray places and restarts.

The run folders must be on a file system that all nodes share. It holds the checkpoints from which a task is
resumed after its worker or node has died, and the locks that keep two tasks out of one run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from firststep.allocator import keep_freed_memory
from firststep.jobs.execute import execute_job
from firststep.jobs.job import Job, JobEvent, OnEvent
from firststep.jobs.ray_cluster import event_queue, import_ray, ray_connection, without_notices
from firststep.jobs.resource_estimate import ResourceEstimate, estimate_resources
from firststep.utils.user_modules import import_user_modules, user_modules

POLL_SECONDS = 0.3
SECONDS_TO_SAVE = 60.0  # that workers have after an interrupt


@dataclass(frozen=True)
class RayExecutor:
    """Run each job as a Ray task.

    A connection that the program has already made (``ray.init``) is used and left open.

    Examples:
        >>> from firststep.jobs import RayExecutor
        >>> RayExecutor(address="auto").retries
        3
    """

    address: str | None = None
    """Address of the cluster: ``auto``, ``host:port`` or ``ray://host:port``.

    By default Ray chooses: RAY_ADDRESS, a cluster that runs on this machine, or a new one here."""
    retries: int = 3
    """Number of times that a job whose worker or node died is resumed from its last checkpoint."""

    def __post_init__(self) -> None:
        import_ray()  # fails at once if Ray is not installed

    def run(self, jobs: Sequence[Job], on_event: OnEvent) -> None:
        ray = import_ray()
        with without_notices(), ray_connection(ray, self.address), event_queue(ray) as events:
            tasks = self._submit(ray, jobs, events, on_event)
            try:
                while tasks:
                    ready, _ = ray.wait(list(tasks), timeout=POLL_SECONDS)
                    with suppress(ray.exceptions.RayError):  # an event may be lost, a result is not
                        _pass_on(events.get_nowait_batch(events.qsize()), tasks.values(), on_event)
                    for task in ready:
                        on_event(_final_event(ray, tasks.pop(task), task))
            except BaseException:  # Ctrl-C, or an error in on_event: leave no task behind
                for task in tasks:
                    ray.cancel(task)  # a running task gets KeyboardInterrupt: it saves and stops
                if tasks:
                    ray.wait(list(tasks), num_returns=len(tasks), timeout=SECONDS_TO_SAVE)
                raise

    def _submit(self, ray: Any, jobs: Sequence[Job], events: Any, on_event: OnEvent) -> dict[Any, Job]:
        has_gpus = ray.cluster_resources().get("GPU", 0) > 0
        remote = ray.remote(max_calls=1)(_task)  # a fresh process for each, without the last one's memory
        tasks = {}
        for job in jobs:
            need = estimate_resources(job.config, gpu=has_gpus)
            if job.config.device != "auto" and torch.device(job.config.device).index:
                text = f"`device={job.config.device}`: Ray chooses the GPU itself; use `device=cuda`"
                on_event(JobEvent(job=job.name, state="failed", text=text))
                continue
            if not any(_could_run(node, need) for node in ray.nodes()):
                on_event(JobEvent(job=job.name, state="waiting", text=f"no node has {_words(need)} yet"))
            options = remote.options(
                name=job.name,
                num_cpus=need.cpus,
                num_gpus=need.gpus,
                memory=need.memory_bytes,
                max_retries=self.retries,
            )
            tasks[options.remote(job, events, need.cpus, user_modules())] = job
        return tasks


def _task(job: Job, events: Any, threads: int, modules: list[str]) -> JobEvent:
    ray = import_ray()
    import_user_modules(modules)  # a worker of Ray does not have the environment of the command

    def send(event: JobEvent) -> None:
        with suppress(ray.exceptions.RayError):
            events.put_nowait(event)

    keep_freed_memory()  # the process is ours
    return execute_job(job, send, threads)


def _pass_on(events: Iterable[JobEvent], jobs: Iterable[Job], on_event: OnEvent) -> None:
    running = {job.name for job in jobs}
    for event in events:
        if event.job in running:
            on_event(event)


def _final_event(ray: Any, job: Job, task: Any) -> JobEvent:
    try:
        event: JobEvent = ray.get(task)
        return event
    except ray.exceptions.RayError as error:  # the worker or its node died more often than retries allow
        reason = next((line for line in str(error).splitlines() if line.strip()), "")
        return JobEvent(job=job.name, state="failed", text=f"{type(error).__name__}: {reason}")


def _could_run(node: dict[str, Any], need: ResourceEstimate) -> bool:
    """Whether a node has the resources when nothing else runs there."""
    has = node["Resources"]
    wanted = {"CPU": need.cpus, "GPU": need.gpus, "memory": need.memory_bytes}
    return node["Alive"] and all(has.get(name, 0) >= value for name, value in wanted.items())


def _words(need: ResourceEstimate) -> str:
    gpu = ", a GPU" if need.gpus else ""
    return f"{need.cpus} CPUs{gpu} and {need.memory_bytes / 2**30:.1f} GB"
