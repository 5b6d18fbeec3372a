"""Jobs on this machine: skipped, resumed, surviving failures and deaths, shared between schedulers."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from firststep import FirststepError
from firststep.evaluation import load_evaluation
from firststep.jobs import Job, JobEvent, LocalExecutor, run_jobs
from firststep.jobs.local import run_in_worker
from firststep.training import train
from firststep.utils import WorkerProcess
from runs import TINY, same_run, tiny_run
from scheduler_process import jobs_of

SCHEDULER = [sys.executable, str(Path(__file__).parents[1] / "helpers" / "scheduler_process.py")]


@pytest.mark.slow
def test_a_failure_is_named_and_survived_and_what_is_done_is_skipped(tmp_path: Path) -> None:
    good = jobs_of(tmp_path, 2, 1)[0]
    diverges = Job(
        name="bad", config=replace(TINY, outer_rate=1e30, updates=30, seed=9), folder=tmp_path / "bad"
    )
    impossible = Job(
        name="impossible",
        config=replace(TINY, backbone="resnet10", filters=None),
        folder=tmp_path / "none",
    )
    tiny_run(tmp_path / "other", updates=1)
    other = Job(name="other", config=TINY, folder=tmp_path / "other")
    seen: list[JobEvent] = []
    failed = run_jobs([diverges, impossible, good, other], on_event=seen.append)
    assert list(failed) == ["impossible", "other", "bad"]
    assert "loss is not finite" in failed["bad"]
    assert "image_size must be at least 32" in failed["impossible"]
    assert "holds a run with updates 1, not 4" in failed["other"]
    assert [r.text for r in seen if r.state == "done"] == ["trained"]
    assert load_evaluation(good.folder / "evaluations/few.json").measurement.steps == (0, 1)
    seen.clear()
    assert run_jobs([good], on_event=seen.append) == {}
    assert [r.state for r in seen] == ["skipped"]


def test_names_and_folders_must_differ(tmp_path: Path) -> None:
    job = Job(name="a", config=TINY, folder=tmp_path / "a")
    with pytest.raises(FirststepError, match="two jobs have the name a"):
        run_jobs([job, replace(job, folder=tmp_path / "b")])
    with pytest.raises(FirststepError, match="two jobs have the folder"):
        run_jobs([job, replace(job, name="b")])
    with pytest.raises(FirststepError, match="`at_once` must be at least 1"):
        LocalExecutor(at_once=0)


@pytest.mark.slow
def test_a_killed_scheduler_run_again_redoes_nothing_and_ends_the_same(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, 10, 2)
    command = [*SCHEDULER, str(tmp_path), "10", "2"]
    scheduler = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert scheduler.stdout is not None
    for line in scheduler.stdout:
        job, state, update = line.split()
        if job == "run1" and state == "training" and int(update) > 2:
            break
    scheduler.kill()
    complaints = scheduler.communicate()[1]  # the workers', who end a little later
    assert "Traceback" not in complaints
    assert not (jobs[1].folder / "error.txt").exists()
    assert not jobs[1].is_done()
    before = jobs[0].run.checkpoint_path("last").stat().st_mtime_ns
    seen: list[JobEvent] = []
    assert run_jobs(jobs, on_event=seen.append) == {}
    ends = {r.job: (r.state, r.text) for r in seen if r.state in ("done", "skipped")}
    assert ends == {"run0": ("skipped", "done before"), "run1": ("done", "resumed")}
    assert jobs[0].run.checkpoint_path("last").stat().st_mtime_ns == before
    same_run(train(jobs[1].config, tmp_path / "whole").folder, jobs[1].folder)


def test_a_worker_finishes_though_nobody_reads_its_events(tmp_path: Path) -> None:
    """The state between the scheduler's death and the moment when the worker notices it."""
    job = jobs_of(tmp_path, 2, 1)[0]
    worker = WorkerProcess(run_in_worker, job, 1, None)
    worker.messages.close()
    worker.process.join()
    assert worker.process.exitcode == 0
    assert job.is_done()
    assert not (job.folder / "error.txt").exists()


@pytest.mark.slow
def test_two_schedulers_at_once_train_each_run_once(tmp_path: Path) -> None:
    command = [*SCHEDULER, str(tmp_path), "6", "2"]
    schedulers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [each.communicate(timeout=240)[0].split("\n") for each in schedulers]
    assert [each.returncode for each in schedulers] == [0, 0]
    for job in jobs_of(tmp_path, 6, 2):
        assert job.is_done()
        # Each start of a training opens a new file there.
        assert len(list((job.folder / "tensorboard").iterdir())) == 1
        trainers = [any(line.startswith(f"{job.name} training") for line in lines) for lines in said]
        assert sorted(trainers) == [False, True]


@pytest.mark.slow
def test_a_killed_worker_is_resumed_as_often_as_stated(tmp_path: Path) -> None:
    job = jobs_of(tmp_path, 12, 1)[0]
    killed: list[int] = []

    def kill_once(event: JobEvent) -> None:
        if event.state == "training" and event.update >= 3 and not killed:
            killed.append(event.update)
            (worker,) = multiprocessing.active_children()
            worker.kill()

    failed = run_jobs([job], LocalExecutor(retries=0), kill_once)
    assert "its process was killed" in failed[job.name]
    assert not job.is_done()
    killed.clear()
    assert run_jobs([job], LocalExecutor(retries=1), kill_once) == {}
    assert killed
    same_run(train(job.config, tmp_path / "whole").folder, job.folder)
