"""Run jobs: finished ones are skipped, interrupted ones resumed, and a failure does not stop the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firststep.errors import FirststepError
from firststep.jobs.executor import Executor
from firststep.jobs.job import Job, JobEvent, OnEvent
from firststep.jobs.local import LocalExecutor
from firststep.jobs.resource_estimate import estimate_resources
from firststep.training import Interrupted


def run_jobs(
    jobs: Sequence[Job], executor: Executor | None = None, on_event: OnEvent | None = None
) -> dict[str, str]:
    """Train and evaluate what is missing of every job; returns the failed ones: name → reason, in a line.

    Several callers may run the same jobs at once, in any processes that see the same folders: each run is
    trained once.

    Args:
        jobs: what to do; a finished one does not start a process.
        executor: where; default as many at once as this machine allows.
        on_event: called in this process with everything that happens.

    Raises:
        Interrupted: after Ctrl-C; the workers have saved.

    Examples:
        >>> from firststep.jobs import InlineExecutor, Job, run_jobs
        >>> run_jobs([Job(name="a run", config=run.config, folder=run.folder)], InlineExecutor())
        {}
    """
    for kind, values in (("name", [j.name for j in jobs]), ("folder", [str(j.folder) for j in jobs])):
        if twice := next((value for value in values if values.count(value) > 1), None):
            raise FirststepError(f"two jobs have the {kind} {twice}")
    failed: dict[str, str] = {}
    finished = 0

    def receive(event: JobEvent) -> None:
        nonlocal finished
        if event.state == "failed":
            failed[event.job] = event.text
        finished += event.is_final
        if on_event is not None:
            on_event(event)

    left = []
    for job in map(_with_absolute_paths, jobs):
        try:
            if job.is_done():
                receive(JobEvent(job=job.name, state="skipped", text="done before"))
            else:
                estimate_resources(job.config)  # refuses what cannot be built, before starting a process
                left.append(job)
        except FirststepError as error:
            receive(JobEvent(job=job.name, state="failed", text=str(error)))
    for job in left:
        receive(JobEvent(job=job.name, state="waiting"))
    try:
        if left:
            (executor or LocalExecutor()).run(left, receive)
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped with {finished} of {len(jobs)} runs finished; the others are saved: the same command "
            "resumes them"
        ) from None
    return failed


def _with_absolute_paths(job: Job) -> Job:
    """Workers may run in another working directory."""
    paths = {name: getattr(job.config, name) for name in ("data_path", "cache")}
    absolute = {name: path.expanduser().absolute() for name, path in paths.items() if path is not None}
    return replace(job, config=replace(job.config, **absolute), folder=job.folder.absolute())
