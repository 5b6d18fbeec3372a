"""Does a second process double the speed? One process with one thread against several with one thread each.

    python benchmarks/scaling.py --out benchmarks/scaling.md

Real launches of torchrun train Conv4-64 on glyphs at 32 px (5-way 5-shot, 16 queries, 5 steps, conditioned, 4
tasks a meta-batch) and time the meta-updates; launches take turns, and the fastest round of each counts,
because other programs can only make it slower. Run it on an idle machine. The goal is 1.85 times the
speed with two processes.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro

from firststep.data import Preprocessing
from firststep.distributed import Team, join, launched
from firststep.training import TrainConfig, TrainingProgress, build_meta_learner, train

GOAL = 1.85


@dataclass(frozen=True, kw_only=True)
class Settings:
    processes: int = 2
    """To compare with one."""
    updates: int = 8
    """Timed meta-updates of a launch, after two to warm up."""
    rounds: int = 3
    """Launches of each kind; the fastest counts."""
    filters: int = 64
    """Channels of each block of conv4."""
    image_size: int = 32
    """Pixels."""
    meta_batch: int = 4
    """Tasks of a meta-update."""
    out: Path | None = None
    """Markdown file for the result."""

    def config(self) -> TrainConfig:
        return TrainConfig(
            filters=self.filters,
            image_size=self.image_size,
            meta_batch=self.meta_batch,
            rate=0.05,
            updates=self.updates + 3,  # two to warm up, and the last one is validated
            validate_every=1_000_000,
            validation_episodes=2,
            device="cpu",
            threads=1,
        )


def work(settings: Settings, result: Path) -> None:
    """Run in each process of a launch; rank 0 writes the times."""
    ends: list[float] = []

    def watch(progress: TrainingProgress) -> None:
        ends.append(time.perf_counter())

    with join() as team, tempfile.TemporaryDirectory() as folder:
        train(settings.config(), Path(folder) / "run", on_update=watch, team=team)
        seconds = statistics.median(b - a for a, b in itertools.pairwise(ends[1:-1]))
        exchange, size = time_exchange(settings.config(), team)
        if team.is_rank0:
            result.write_text(json.dumps({"update": seconds, "exchange": exchange, "bytes": size}))


def time_exchange(config: TrainConfig, team: Team) -> tuple[float, int]:
    """Return the seconds of a meta-update's exchange alone, and the bytes of the parameters."""
    meta = build_meta_learner(config, Preprocessing(image_size=config.image_size or 32, channels=1))
    gradients = {name: torch.ones_like(value) for name, value in meta.named_parameters()}
    times = []
    for _ in range(20):
        start = time.perf_counter()
        total = team.ordered_sum(config.meta_batch)
        for _ in team.share(range(config.meta_batch)):
            total.add(gradients)
        total.result()
        times.append(time.perf_counter() - start)
    return statistics.median(times), sum(value.nbytes for value in gradients.values())


def bytes_sent(parameter_bytes: float, tasks: int, workers: int) -> float:
    """Return the bytes a worker sends per meta-update: slices of its tasks, then its slice of the sum."""
    each = math.ceil(tasks / workers)
    return (each + 1) * (workers - 1) / workers * parameter_bytes


def launch(settings: Settings, processes: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "times.json"
        values = dataclasses.asdict(settings) | {"out": None}
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        program = [__file__, json.dumps(values), str(result)]
        subprocess.run([*launcher, "--nproc-per-node", str(processes), *program], check=True)
        return json.loads(result.read_text())


def fastest(runs: list[dict[str, float]]) -> dict[str, float]:
    return min(runs, key=lambda run: run["update"])


def compare(settings: Settings) -> str:
    """Launch both kinds of run; return the result as Markdown."""
    counts = (1, settings.processes)
    runs: dict[int, list[dict[str, float]]] = {count: [] for count in counts}
    for _ in range(settings.rounds):
        for count in counts:
            runs[count].append(launch(settings, count))
    alone, several = (fastest(runs[count]) for count in counts)
    speedup = alone["update"] / several["update"]
    sent = bytes_sent(several["bytes"], settings.meta_batch, settings.processes)
    lines = [
        f"Conv4-{settings.filters}, {settings.image_size} px, 5-way 5-shot, 16 queries, 5 steps, conditioned,"
        f" {settings.meta_batch} tasks a meta-batch; one thread a process, torch {torch.__version__}, gloo "
        f"on one machine; fastest of {settings.rounds} launches, median of {settings.updates} meta-updates.",
        "",
        "| processes | seconds a meta-update | tasks a second |",
        "|---|---|---|",
        *(
            f"| {count} | {run['update']:.3f} | {settings.meta_batch / run['update']:.2f} |"
            for count, run in zip(counts, (alone, several), strict=True)
        ),
        "",
        f"{settings.processes} processes are {speedup:.2f} times as fast as one: efficiency "
        f"{100 * speedup / settings.processes:.0f} %. Each sends {sent / 1e3:,.0f} kB a meta-update "
        f"({several['bytes'] / 1e3:,.0f} kB of parameters); an exchange that nothing overlaps takes "
        f"{1e3 * several['exchange']:.1f} ms, {100 * several['exchange'] / several['update']:.1f} % of an "
        "update.",
    ]
    if settings.processes == 2:
        lines += ["", f"Goal: {GOAL} times with two processes: {'met' if speedup >= GOAL else 'NOT met'}."]
    return "\n".join([*lines, ""])


def main(settings: Settings) -> None:
    text = compare(settings)
    print(text)
    if settings.out is not None:
        settings.out.write_text(text)


if __name__ == "__main__":
    if launched():
        work(Settings(**json.loads(sys.argv[1])), Path(sys.argv[2]))
    else:
        main(tyro.cli(Settings, description=__doc__))
