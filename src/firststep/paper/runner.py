"""Training and testing the runs of an experiment: skips what is done, resumes what was cut."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path

from firststep.errors import FirststepError
from firststep.evaluation.evaluate import Evaluation, evaluate, load_evaluation
from firststep.evaluation.trained import data_for, load_trained
from firststep.paper.experiments import Experiment, run_name
from firststep.training import Run, TrainConfig, train
from firststep.training.setup import choose_device, open_data

Watch = Callable[[str, str], None]


def run_experiment(experiment: Experiment, root: Path, watch: Watch | None = None) -> dict[str, str]:
    """Train and test what is missing, as many at once as there are cores; returns what failed, and why.

    Args:
        experiment: what to run.
        root: folder of the runs; each is in a folder named by its configuration.
        watch: called with a row's name and what became of it.
    """
    open_data(next(iter(experiment.runs.values())))  # built once, before processes ask for it
    jobs = {run_name(config): config for config in experiment.runs.values()}
    rows = {run_name(config): row for row, config in experiment.runs.items()}
    failed: dict[str, str] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_processes(jobs), mp_context=context) as pool:
        futures: dict[Future[str], str] = {
            pool.submit(_train_and_test, config, root / name, experiment.steps, experiment.episodes): name
            for name, config in jobs.items()
        }
        for future in as_completed(futures):
            row = rows[futures[future]]
            try:
                outcome = future.result()
            except Exception as error:
                outcome = f"failed: {error}"
                failed[row] = str(error)
            if watch is not None:
                watch(row, outcome)
    return failed


def _processes(jobs: dict[str, TrainConfig]) -> int:
    """One at a time on a GPU; on the CPU as many as the cores allow."""
    if any(choose_device(config.device).type != "cpu" for config in jobs.values()):
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(max(1, config.threads) for config in jobs.values())
    return max(1, min(len(jobs), cores // threads))


def _train_and_test(config: TrainConfig, folder: Path, steps: tuple[int, ...], episodes: int) -> str:
    path = evaluation_path(folder, episodes)
    if path.with_suffix(".json").is_file():
        return "was done"
    run = Run(folder)
    done = "trained"
    if run.record_path.is_file():
        done = "resumed"
        train(resume=folder)
    else:
        train(config, folder)
    trained = load_trained(folder)
    evaluate(trained, data_for(trained), steps=steps, episodes=episodes).save(path)
    return done


def evaluation_path(folder: Path, episodes: int) -> Path:
    return folder / "evaluations" / f"experiment-{episodes}"


def collect(experiment: Experiment, root: Path) -> dict[str, Evaluation | None]:
    """What exists of an experiment's results: row → evaluation, or None where it is missing."""
    found: dict[str, Evaluation | None] = {}
    for row, config in experiment.runs.items():
        path = evaluation_path(root / run_name(config), experiment.episodes).with_suffix(".json")
        try:
            found[row] = load_evaluation(path) if path.is_file() else None
        except FirststepError:
            found[row] = None
    return found
