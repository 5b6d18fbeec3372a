"""The error of the meta-gradient in bfloat16, relative to float64, on one episode of glyphs at 32 px.

python benchmarks/precision.py [--episode 0]

5-way 5-shot with the conditioning loss on the classifier, by network and number of inner steps. The networks
are untrained, with seed 0. The limit that refuses large errors is switched off here.
"""

from __future__ import annotations

import argparse
import copy
import math

import torch
from torch import Tensor, nn

from firststep import Conditioning, MetaLearner, Task, build_backbone, maml
from firststep.data import open_dataset, tasks_of
from firststep.evaluation import to_task
from firststep.metagradient import meta_batch

ROWS = (("conv4, 32 filters", 1), ("conv4, 32 filters", 2), ("conv4, 32 filters", 5), ("perceptron, tanh", 5))


def networks() -> dict[str, nn.Module]:
    source = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    return {
        "conv4, 32 filters": build_backbone(
            "conv4", ways=5, image_size=32, channels=1, filters=32, generator=source
        ),
        "perceptron, tanh": nn.Sequential(nn.Flatten(), nn.Linear(32 * 32, 40), nn.Tanh(), nn.Linear(40, 5)),
    }


def gradient(network: nn.Module, steps: int, task: Task, dtype: torch.dtype) -> Tensor:
    """Return the meta-gradient as one vector; for bfloat16 the parameters are float32."""
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    precision = "bf16" if dtype == torch.bfloat16 else None
    meta = MetaLearner(
        copy.deepcopy(network).to(exact),
        maml(0.05),
        steps=steps,
        conditioning=Conditioning(),
        precision=precision,
    )
    meta([task.to(dtype=exact)]).backward()
    return torch.cat([value.grad.double().flatten() for value in meta.parameters() if value.grad is not None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episode", type=int, default=0)
    episodes = tasks_of(open_dataset("glyphs"), "val", ways=5, shots=5, queries=5, seed=0)
    task = to_task(episodes[parser.parse_args().episode], torch.device("cpu"))
    meta_batch.LARGEST_ERROR = math.inf
    built = networks()
    print("| network | steps | error, float32 | error, bfloat16 |")
    print("|---|---:|---:|---:|")
    for name, steps in ROWS:
        exact, single, half = (
            gradient(built[name], steps, task, dtype)
            for dtype in (torch.float64, torch.float32, torch.bfloat16)
        )
        errors = [float((found - exact).norm() / exact.norm()) for found in (single, half)]
        print(f"| {name} | {steps} | {errors[0]:.1e} | {errors[1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
