"""What a worker does with a job: train it or go on with it, then make the tests that are missing.

The lock of the run (:meth:`Run.lock`) is the arbiter between workers, whoever started them: who does not get
it waits, and then looks again what is left to do.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Iterator

import torch

from firststep.data import Dataset
from firststep.errors import FirststepError
from firststep.evaluation.evaluate import DEFAULT_EPISODES, evaluate
from firststep.evaluation.trained import load_trained
from firststep.jobs.job import Job, Report, Tell, Test
from firststep.training import train
from firststep.training.loop import Progress
from firststep.training.run import RunTaken
from firststep.training.setup import open_data
from firststep.utils.files import write_text

LOOK_AGAIN = 0.5  # seconds between looks at a lock that another process holds
REPORT_EVERY = 0.2  # seconds between reports of one worker


def carry_out(job: Job, tell: Tell, threads: int) -> Report:
    """Do what is left of a job and return its last report; a failure is a report too.

    Args:
        job: what to do.
        tell: told as it goes.
        threads: CPU threads for a run whose configuration leaves them open.
    """
    try:
        return _carry_out(job, tell, threads)
    except FirststepError as error:
        return Report(job=job.name, state="failed", text=str(error))
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        trace = job.folder / "error.txt"
        with contextlib.suppress(FirststepError, OSError):  # a full disk may be the very reason
            write_text(trace, traceback.format_exc())
            reason = f"{reason} (see {trace})"
        return Report(job=job.name, state="failed", text=reason)


def _carry_out(job: Job, tell: Tell, threads: int) -> Report:
    if not job.config.threads:
        torch.set_num_threads(threads)
    existed = job.run.record_path.is_file()
    data = open_data(job.config)
    _train(job, tell, data)
    if job.missing_tests():
        with _lock(job, tell):
            for test in job.missing_tests():
                _test(job, test, tell, data)
    return Report(job=job.name, state="done", text="resumed" if existed else "trained")


def _train(job: Job, tell: Tell, data: Dataset) -> None:
    watch = _Seldom(job, tell)
    while not job.is_trained():
        try:
            if job.run.record_path.is_file():
                train(resume=job.folder, watch=watch, data=data)
            else:
                train(job.config, job.folder, watch=watch, data=data)
        except RunTaken:
            with _lock(job, tell):
                pass  # it is free again: look what is left


@contextlib.contextmanager
def _lock(job: Job, tell: Tell) -> Iterator[None]:
    """Hold the run's lock, after waiting for whoever has it."""
    told = False
    while True:
        try:
            held = job.run.lock()
            break
        except RunTaken:
            if not told:
                tell(Report(job=job.name, state="waiting", text="another process has this run"))
            told = True
            time.sleep(LOOK_AGAIN)
    with held:
        yield


def _test(job: Job, test: Test, tell: Tell, data: Dataset) -> None:
    total = test.options.get("episodes", DEFAULT_EPISODES)
    done, last = 0, -REPORT_EVERY

    def progress() -> None:
        nonlocal done, last
        done += 1
        if time.monotonic() - last >= REPORT_EVERY:
            last = time.monotonic()
            tell(Report(job=job.name, state="testing", update=done, total=total, text=test.name))

    trained = load_trained(job.folder)
    evaluate(trained, data, progress=progress, **test.options).save(test.path(job.folder))


class _Seldom:
    """Reports training, but not every update of a fast run."""

    def __init__(self, job: Job, tell: Tell) -> None:
        self.job, self.tell = job, tell
        self.last = -REPORT_EVERY

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self.last < REPORT_EVERY and progress.update < progress.total:
            return
        self.last = now
        best = f", best {100 * progress.best:.1f} %" if progress.best >= 0 else ""
        self.tell(
            Report(
                job=self.job.name,
                state="training",
                update=progress.update,
                total=progress.total,
                text=f"loss {progress.loss:.3f}{best}",
            )
        )
