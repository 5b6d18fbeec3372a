"""MetaLearner under DistributedDataParallel: every process takes its share of the tasks.

DDP averages gradients over the processes; with ``reduction="mean"`` the result is that of one process with
all tasks. Run: torchrun --nproc-per-node 2 examples/data_parallel.py [UPDATES]
"""

from __future__ import annotations

import sys

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

import firststep as fs
from toy import RATE, STEPS, Perceptron, toy_task

BATCH = 4


def meta_train(updates: int, rank: int, size: int) -> fs.MetaLearner:
    """Meta-train; the parameters are the same on every rank and, up to rounding, for any ``size``."""
    meta = fs.MetaLearner(
        Perceptron(),
        fs.meta_sgd(rate=RATE),
        steps=STEPS,
        conditioning=fs.Conditioning(),
        reduction="mean",
    ).double()
    parallel = DistributedDataParallel(meta) if size > 1 else meta
    optimiser = torch.optim.Adam(meta.parameters(), 3e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(updates):
        tasks = [fs.Task(*toy_task(generator)).to(dtype=torch.float64) for _ in range(BATCH)]
        optimiser.zero_grad()
        loss = parallel(tasks[rank::size])
        loss.backward()
        optimiser.step()
    return meta


def main(updates: int = 50) -> None:
    dist.init_process_group("gloo")
    try:
        meta = meta_train(updates, dist.get_rank(), dist.get_world_size())
        checksum = sum(p.abs().sum() for p in meta.parameters())
        if dist.get_rank() == 0:
            print(f"{dist.get_world_size()} processes, sum of all |parameters|: {checksum:.10f}")
        dist.barrier()  # nobody leaves while another still talks to it
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
