"""A meta-gradient's time over its floor, both taken in turns: this machine's speed changes by the minute.

python benchmarks/over_the_floor.py "Conv4-64, 84 px" "firststep" [kept]
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import torch

from contenders import CONTENDERS, FOUR, TASKS, model_and_task
from firststep.allocator import keep_freed_memory
from roofline import convolutions, operations, peak

ROUNDS, STEPS = 5, 5

CASES = (
    ("Conv4-64, 84 px", "firststep", ""),
    ("Conv4-64, 84 px", "firststep", "kept"),
    ("Conv4-32, 28 px", "firststep", "kept"),
    ("Conv4-32, 28 px", FOUR, "kept"),
    ("Conv4-64, 32 px", "firststep", "kept"),
    ("Conv4-64, 32 px", FOUR, "kept"),
    ("Conv4-32, 28 px", "firststep + all", "kept"),
    ("Conv4-64, 32 px", "firststep + all", "kept"),
    ("ResNet10, 84 px", "firststep", "kept"),
)
"""Network, contender, and whether freed memory is kept."""


def ratios(network: str, contender: str, kept: bool) -> dict[str, float]:
    """Return least, median and most of the time over the floor, and the largest convolution's GFLOPS."""
    if kept and not keep_freed_memory():
        raise SystemExit("this C library cannot be told to keep freed memory, or MALLOC_... is set")
    _, task = model_and_task(network)
    support, query = convolutions(network, task.support_x), convolutions(network, task.query_x)
    samples = len(task.support_y) if contender.endswith("+ all") else 0
    work = operations(support, query, STEPS, samples) * TASKS.get(contender, 1)
    compute = CONTENDERS[contender](network, STEPS)
    compute()
    found, speeds = [], []
    for _ in range(ROUNDS):
        with torch.no_grad():
            speeds.append(peak(support))
        compute()
        start = time.perf_counter()
        compute()
        found.append((time.perf_counter() - start) * speeds[-1] / work)
    return {
        "least": min(found),
        "median": statistics.median(found),
        "most": max(found),
        "speed": statistics.median(speeds) / 1e9,
    }


if __name__ == "__main__":
    print(json.dumps(ratios(sys.argv[1], sys.argv[2], "kept" in sys.argv[3:])))
