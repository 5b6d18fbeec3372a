"""A model, not a measurement: where one run stops scaling, computed from stated assumptions.

Time of a meta-update of B tasks on N workers, m = ceil(B/N) tasks each (exchange: docs/scaling.md):

    task(F)  = 1365 F / speed                    F: FLOP of one image forward
    x        = (N-1)/N · P / bandwidth + (N-1) · latency     one half of a ring all-reduce of P bytes
    T(N)     = task + (m-1) · max(task, x) + 2x

1365 is the forward-equivalents of a 5-way 5-shot task with 16 queries and 5 inner steps: 9 for each of 25
support images at each inner step (forward, backward, recomputation, second derivatives), 3 for each of the
80 query images. The exchange of a task overlaps with the next task, so only the last one and the final
gathering are waited for. Not modelled: that all wait for the slowest worker, traffic of others, validation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FORWARDS_OF_A_TASK = 5 * 25 * 9 + 80 * 3
WORKERS = (8, 16, 32, 64, 128, 256, 512)
META_BATCH = 64


@dataclass(frozen=True)
class Network:
    name: str
    parameters: int
    flop: float
    """Of one image forward, a multiply-add counted as two."""


@dataclass(frozen=True)
class Host:
    name: str
    speed: float
    """FLOP/s that training sustains, everything included."""
    bandwidth: float
    """bytes/s"""
    latency: float
    """seconds a message"""


NETWORKS = (
    Network("Conv4-64, 84 px", 121_093, 0.194e9),
    Network("ResNet18, 224 px", 11_179_077, 3.64e9),
)
# Two AVX2 cores take 5.4 s for a task of Conv4-64 at 84 px: 50 GFLOP/s. The GPU's figure is assumed.
HOSTS = (
    Host("2 CPU cores, 10 Gbit/s, 50 µs", 50e9, 10e9 / 8, 50e-6),
    Host("1 GPU at 5 TFLOP/s, 100 Gbit/s, 10 µs", 5e12, 100e9 / 8, 10e-6),
)


def bytes_sent(parameter_bytes: float, tasks: int, workers: int) -> float:
    """By each worker in a meta-update: slices of each of its tasks, then its slice of the sum to all."""
    each = math.ceil(tasks / workers)
    return (each + 1) * (workers - 1) / workers * parameter_bytes


def task_seconds(network: Network, worker: Host) -> float:
    return FORWARDS_OF_A_TASK * network.flop / worker.speed


def update_seconds(network: Network, worker: Host, tasks: int, workers: int) -> float:
    task = task_seconds(network, worker)
    if workers == 1:
        return tasks * task
    workers = min(workers, tasks)  # a worker without a task has nothing to do
    half = (workers - 1) / workers * 4 * network.parameters / worker.bandwidth
    half += (workers - 1) * worker.latency
    return task + (math.ceil(tasks / workers) - 1) * max(task, half) + 2 * half


def model_markdown() -> str:
    """Efficiency with one task a worker, and speed-up with a fixed meta-batch."""
    head = f"| network | worker | task | {' | '.join(map(str, WORKERS))} |\n|{'---|' * (3 + len(WORKERS))}\n"
    growing, fixed = head, head
    for network in NETWORKS:
        for worker in HOSTS:
            task = task_seconds(network, worker)
            start = f"| {network.name} | {worker.name} | {task:.2g} s | "
            efficiency = [task / update_seconds(network, worker, n, n) for n in WORKERS]
            alone = update_seconds(network, worker, META_BATCH, 1)
            speedup = [alone / update_seconds(network, worker, META_BATCH, n) for n in WORKERS]
            growing += start + " | ".join(f"{100 * value:.0f} %" for value in efficiency) + " |\n"
            fixed += start + " | ".join(f"{value:.0f}" for value in speedup) + " |\n"
    return (
        "Efficiency with one task a worker (the meta-batch grows with the workers):\n\n"
        f"{growing}\nSpeed-up over one worker with a meta-batch of {META_BATCH} tasks:\n\n{fixed}"
    )
