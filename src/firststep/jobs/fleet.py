"""A fleet of jobs: what is done is skipped, what was cut goes on, what fails does not stop the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from firststep.errors import FirststepError
from firststep.jobs.executor import Executor
from firststep.jobs.job import Job, Report
from firststep.jobs.local import LocalExecutor
from firststep.jobs.needs import needs
from firststep.training.loop import Interrupted


def run_fleet(
    jobs: Sequence[Job], executor: Executor | None = None, watch: Callable[[Report], None] | None = None
) -> dict[str, str]:
    """Train and test what is missing of every job; returns the failed ones: name → why, in a line.

    Several planners may work on the same jobs at once, in any processes that see the same folders: each run
    is trained once.

    Args:
        jobs: what to do; a finished one does not start a process.
        executor: where; default as many at once as this machine allows.
        watch: told of everything that happens, in this process.

    Raises:
        Interrupted: after Ctrl-C; the workers have saved.
    """
    for kind, values in (("name", [j.name for j in jobs]), ("folder", [str(j.folder) for j in jobs])):
        if twice := next((value for value in values if values.count(value) > 1), None):
            raise FirststepError(f"two jobs have the {kind} {twice}")
    failed: dict[str, str] = {}
    over = 0

    def tell(report: Report) -> None:
        nonlocal over
        if report.state == "failed":
            failed[report.job] = report.text
        over += report.state in ("done", "was done", "failed")
        if watch is not None:
            watch(report)

    left = []
    for job in map(_absolute, jobs):
        try:
            if job.is_done():
                tell(Report(job=job.name, state="was done"))
            else:
                needs(job.config)  # refuses what cannot be built before a process is started for it
                left.append(job)
        except FirststepError as error:
            tell(Report(job=job.name, state="failed", text=str(error)))
    for job in left:
        tell(Report(job=job.name, state="waiting"))
    try:
        if left:
            (executor or LocalExecutor()).run(left, tell)
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped with {over} of {len(jobs)} runs over; the others are saved: the same command goes on"
        ) from None
    return failed


def _absolute(job: Job) -> Job:
    """Workers may run in another working folder."""
    config = job.config
    here = {name: getattr(config, name) for name in ("data_path", "cache")}
    moved = {name: path.expanduser().absolute() for name, path in here.items() if path is not None}
    return replace(job, config=replace(config, **moved), folder=job.folder.absolute())
