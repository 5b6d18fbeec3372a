"""Several training runs at once, each in a process of its own, watched together."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import traceback
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from firststep.errors import FirststepError
from firststep.training.config import TrainConfig
from firststep.training.loop import Progress, train
from firststep.training.run import Run


def train_side_by_side(
    jobs: dict[str, tuple[TrainConfig, Path]], watch: Callable[[str, Progress], None] | None = None
) -> dict[str, Run]:
    """Train every job's configuration into its folder; the CPU's cores are divided between them.

    The number of threads is part of each run's configuration, and results do not depend on it beyond
    rounding. If one job fails the others are stopped, and its error is raised here.

    Args:
        jobs: name → (configuration, folder of the new run).
        watch: called with a job's name and progress after every update.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(1, cores // len(jobs))
    context = multiprocessing.get_context("spawn")  # fork would copy PyTorch's threads in an unknown state
    messages: Any = context.Queue()
    processes: dict[str, BaseProcess] = {}
    for name, (config, out) in jobs.items():
        shared = replace(config, threads=config.threads or threads)
        processes[name] = context.Process(target=_work, args=(name, shared, out, messages), daemon=True)
        processes[name].start()
    running = set(jobs)
    try:
        while running:
            try:
                name, message = messages.get(timeout=1.0)
            except queue.Empty:
                _raise_if_dead(processes, running)
                continue
            if message is None:
                running.discard(name)
            elif isinstance(message, Progress):
                if watch is not None:
                    watch(name, message)
            else:
                raise FirststepError(f"{name}: {message}")
    finally:
        for process in processes.values():
            if process.is_alive() and running:
                process.terminate()
            process.join()
    return {name: Run(out) for name, (_, out) in jobs.items()}


def _raise_if_dead(processes: dict[str, BaseProcess], running: set[str]) -> None:
    for name in running:
        if not processes[name].is_alive() and processes[name].exitcode != 0:
            raise FirststepError(
                f"the process that trained {name} died (exit code {processes[name].exitcode})"
            )


def _work(name: str, config: TrainConfig, out: Path, messages: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent decides
    try:
        train(config, out, watch=lambda progress: messages.put((name, progress)))
        messages.put((name, None))
    except FirststepError as error:
        messages.put((name, str(error)))
    except Exception:
        messages.put((name, traceback.format_exc()))
