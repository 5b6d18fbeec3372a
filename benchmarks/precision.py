"""The error of the meta-gradient in bfloat16, relative to float64, on glyph episodes.

python benchmarks/precision.py [--episodes 2] [--seed 0] > table.md

Each row is Conv4-32 at 32 px, 5-way 5-shot, 5 steps: a shipped model and the same network before training,
with the conditioning loss on different parameters. The first column of errors is that of float32.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from firststep import Conditioning, MetaLearner, Task, build_backbone, maml
from firststep.data import open_dataset, tasks_of
from firststep.evaluation import to_task
from firststep.training import load_trained

STEPS = 5
SUBSETS = (None, "cls", "emb", "all")


def gradient(network: torch.nn.Module, rate: float, subset: str | None, task: Task, precision: str) -> Tensor:
    """Return the meta-gradient as one vector, computed in ``float64``, ``float32`` or ``bf16``."""
    dtype = torch.float64 if precision == "float64" else torch.float32
    meta = MetaLearner(
        copy.deepcopy(network).to(dtype),
        maml(rate),
        steps=STEPS,
        conditioning=None if subset is None else Conditioning(subset=subset),
        precision="bf16" if precision == "bf16" else None,
    )
    meta([task.to(dtype=dtype)]).backward()
    return torch.cat([value.grad.double().flatten() for value in meta.parameters() if value.grad is not None])


def errors(network: torch.nn.Module, rate: float, subset: str | None, tasks: Sequence[Task]) -> list[float]:
    """Return the mean relative errors in float32 and bfloat16, and the mean cosine in bfloat16."""
    rows = []
    for task in tasks:
        exact, single, half = (
            gradient(network, rate, subset, task, precision) for precision in ("float64", "float32", "bf16")
        )
        cosine = torch.nn.functional.cosine_similarity(exact, half, dim=0)
        rows.append([(single - exact).norm() / exact.norm(), (half - exact).norm() / exact.norm(), cosine])
    return torch.tensor(rows).mean(0).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    data = open_dataset("glyphs")
    episodes = tasks_of(data, "val", ways=5, shots=5, queries=5, seed=arguments.seed)
    tasks = [to_task(episodes[number], torch.device("cpu")) for number in range(arguments.episodes)]
    trained = load_trained("builtin:glyphs-conditioned", device="cpu")
    fresh = build_backbone(
        "conv4", ways=5, image_size=32, channels=1, filters=32, generator=torch.Generator().manual_seed(0)
    )
    print("| network | conditioning | error, float32 | error, bfloat16 | cosine, bfloat16 |")
    print("|---|---|---:|---:|---:|")
    for name, network in (("untrained", fresh), ("trained", trained.meta.network)):
        for subset in SUBSETS:
            single, half, cosine = errors(network, 0.05, subset, tasks)
            print(f"| {name} | {subset or 'none'} | {single:.1e} | {half:.3f} | {cosine:.3f} |", flush=True)


if __name__ == "__main__":
    main()
