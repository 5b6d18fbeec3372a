"""Estimate the time of runs: time one task of each kind in a process of its own, and multiply.

Nothing is compiled: compiling takes a minute or more and would make the rest faster. Memory is estimated by
:func:`firststep.jobs.estimate_resources`, which the scheduler uses too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from firststep.data import Preprocessing, get_dataset_info
from firststep.evaluation import measure_task
from firststep.jobs import Job
from firststep.task import Task
from firststep.training import TrainConfig, build_meta_learner, method_of, saved_update
from firststep.utils import Send, WorkerProcess

LIMIT = 90.0
"""Time limit of a measurement in seconds."""
WARM_UP_UNDER = 2.0
"""If the first task takes fewer seconds than this, preparation dominates, and a second one is timed."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Measured times of one kind of run."""

    task: float
    """Seconds of one task's meta-gradient."""
    step: float
    """Seconds of one inner step with its test."""
    all_step: float
    """Seconds of one condition number of all parameters; 0 if runs do not measure it."""

    def seconds(self, job: Job) -> float:
        """Return the estimated seconds for the rest of a job, with validations and tests."""
        c = job.config
        left = c.total_updates - saved_update(job.run.checkpoint_path("last"))
        validations = left / c.validate_every
        steps = validations * (c.validation_episodes + c.meta_batch) * c.steps
        steps += sum(max(t.settings.steps) * t.settings.episodes for t in job.missing_evaluations())
        of_all = validations / c.all_every * 2 * c.meta_batch * c.steps if c.all_every else 0.0
        return left * c.meta_batch * self.task + steps * self.step + of_all * self.all_step


def shape(config: TrainConfig) -> TrainConfig:
    """Return a configuration with only the settings that decide the cost; the others have one value."""
    same = TrainConfig(data="glyphs" if get_dataset_info(config.data).channels == 1 else "mini-imagenet")
    return replace(
        same,
        image_size=config.image_size or get_dataset_info(config.data).image_size,
        **{name: getattr(config, name) for name in (
            "ways", "shots", "queries", "backbone", "filters", "method", "steps", "conditioning", "subset",
            "query_weights",
            "device", "engine", "threads",
        )},
        all_every=min(1, config.all_every),
    )  # fmt: skip


def measure(config: TrainConfig) -> Cost:
    """Measure in this process."""
    info = get_dataset_info(config.data)
    size = config.image_size or info.image_size
    meta = build_meta_learner(
        replace(config, compile=False), Preprocessing(image_size=size, channels=info.channels)
    )
    task = _task(config, size, info.channels).to(meta.device)
    weights = method_of(config).query_weights(0, 1, config.steps)

    def gradient() -> object:
        return meta.task_gradients([task], query_weights=weights)

    def adapt(steps: range, subset: str) -> Callable[[], object]:
        return lambda: measure_task(meta, task, steps=steps, subset=subset)

    return Cost(
        task=_timed(gradient),
        step=_timed(adapt(range(config.steps + 1), "cls")) / config.steps,
        all_step=_timed(adapt(range(1), "all")) if config.all_every else 0.0,
    )


def _task(config: TrainConfig, size: int, channels: int) -> Task:
    parts = []
    for per_class in (config.shots, config.queries):
        images = torch.rand(config.ways * per_class, channels, size, size)
        parts += [images, torch.arange(config.ways).repeat_interleave(per_class)]
    return Task(*parts)


def _timed(work: Callable[[], object]) -> float:
    for _ in range(2):
        start = time.monotonic()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds = time.monotonic() - start
        if seconds > WARM_UP_UNDER:
            break
    return seconds


def measure_in_process(config: TrainConfig) -> Cost | str:
    """Call :func:`measure` in a fresh process; return the reason if it fails or takes too long."""
    worker = WorkerProcess(_send, config)
    try:
        if not worker.messages.poll(LIMIT):
            return f"one task takes more than {LIMIT:.0f} s here"
        result: Cost | str | None = worker.receive()
        return f"it could not be measured: {worker.exit_reason()}" if result is None else result
    finally:
        worker.kill()


def _send(send: Send, config: TrainConfig) -> None:
    try:
        send(measure(config))
    except Exception as error:
        send(f"{type(error).__name__}: {error}")


def measure_jobs(jobs: list[Job], watch: Callable[[str, int, int], None]) -> dict[str, Cost | str]:
    """Return job's name → cost, or the reason why not; each distinct kind of run is measured once."""
    kinds = {job.name: shape(job.config) for job in jobs}
    distinct = list(dict.fromkeys(kinds.values()))
    costs: dict[TrainConfig, Cost | str] = {}
    for number, kind in enumerate(distinct):
        watch("measuring one task of each kind of run", number, len(distinct))
        costs[kind] = measure_in_process(kind)
    return {name: costs[kind] for name, kind in kinds.items()}
