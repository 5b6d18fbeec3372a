"""Execute a job in a worker: train or resume its run, then make the missing evaluations.

The lock of the run (:meth:`firststep.training.Run.lock`) arbitrates between the workers of all schedulers. A
worker that does not get the lock waits, and then checks again what is left to do.
"""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
from collections.abc import Callable, Iterator

import torch

from firststep.data import Dataset
from firststep.errors import FirststepError, reason
from firststep.evaluation import METRICS
from firststep.evaluation._internal import MAIN
from firststep.jobs.job import EvaluationSpec, Job, JobEvent, OnEvent
from firststep.training import RunTaken, TrainingProgress, load_trained, open_data, train
from firststep.utils import write_text

LOCK_POLL_SECONDS = 0.5
SECONDS_BETWEEN_EVENTS = 0.2  # of one worker


def execute_job(job: Job, on_event: OnEvent, threads: int) -> JobEvent:
    """Execute the rest of a job and return its final event; a failure is an event too.

    Args:
        job: to execute.
        on_event: called with the events before the final one.
        threads: CPU threads for a run whose configuration does not set them.
    """
    try:
        return _execute(job, on_event, threads)
    except FirststepError as error:
        return JobEvent(job=job.name, state="failed", text=str(error))
    except Exception as error:
        text = reason(error)
        trace = job.folder / "error.txt"
        with contextlib.suppress(FirststepError, OSError):  # a full disk may be the reason itself
            write_text(trace, traceback.format_exc())
            text = f"{text} (see {trace})"
        return JobEvent(job=job.name, state="failed", text=text)


def _execute(job: Job, on_event: OnEvent, threads: int) -> JobEvent:
    if not job.config.threads:
        torch.set_num_threads(threads)
    existed = job.run.record_path.is_file()
    data = open_data(job.config)
    _train(job, on_event, data)
    if job.missing_evaluations():
        with _locked(job, on_event):
            for spec in job.missing_evaluations():
                _evaluate(job, spec, on_event, data)
    return JobEvent(job=job.name, state="done", text="resumed" if existed else "trained")


def _train(job: Job, on_event: OnEvent, data: Dataset) -> None:
    send = _throttled(on_event)

    def on_update(progress: TrainingProgress) -> None:
        best = ""
        if 0 <= progress.best < sys.float_info.max:  # after the first validation
            percent = METRICS[MAIN[job.config.kind]].percent
            best = f", best {100 * progress.best:.1f} %" if percent else f", best {progress.best:.3g}"
        event = JobEvent(
            job=job.name,
            state="training",
            update=progress.update,
            total=progress.total,
            text=f"loss {progress.loss:.3f}{best}",
            progress=progress,
        )
        send(event, progress.validation is not None or progress.update == progress.total)

    while not job.is_trained():
        try:
            if job.run.record_path.is_file():
                train(resume=job.folder, on_update=on_update, data=data)
            else:
                train(job.config, job.folder, on_update=on_update, data=data)
        except RunTaken:
            with _locked(job, on_event):
                pass  # the run is free again: check what is left


def _evaluate(job: Job, spec: EvaluationSpec, on_event: OnEvent, data: Dataset) -> None:
    send = _throttled(on_event)
    total = spec.settings.episodes
    episodes = 0

    def on_episode() -> None:
        nonlocal episodes
        episodes += 1
        send(JobEvent(job=job.name, state="testing", update=episodes, total=total, text=spec.name), False)

    trained = load_trained(job.folder, which=spec.which)
    trained.evaluate(data, spec.settings, progress=on_episode).save(spec.path(job.folder))


@contextlib.contextmanager
def _locked(job: Job, on_event: OnEvent) -> Iterator[None]:
    """Wait for the run's lock and hold it."""
    reported = False
    while True:
        try:
            lock = job.run.lock()
            break
        except RunTaken:
            if not reported:
                on_event(JobEvent(job=job.name, state="waiting", text="another process has this run"))
            reported = True
            time.sleep(LOCK_POLL_SECONDS)
    with lock:
        yield


def _throttled(on_event: OnEvent) -> Callable[[JobEvent, bool], None]:
    """Return a function of (event, whether it must be passed on) that drops too frequent events."""
    last = float("-inf")

    def send(event: JobEvent, must: bool) -> None:
        nonlocal last
        now = time.monotonic()
        if must or now - last >= SECONDS_BETWEEN_EVENTS:
            last = now
            on_event(event)

    return send
