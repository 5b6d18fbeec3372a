"""Does conditioning help regression? MAML beside it, by subset, weight γ, inner optimiser and seed.

    PYTHONPATH=examples python benchmarks/regression.py [--problems sinusoid-10 weather] [--split val]

Trainings that differ in seed and γ alone run as one (`stacked_maml.py`). Each such batch leaves its weights
in the folder of the runs, and a batch that is there is not trained again. numbers.csv gets the errors of
every training after steps 0..10 and the condition numbers at every trained stage. over-seeds.csv has the
means with the half-width of Student's t over the seeds; condition numbers have geometric means. Choose on
``--split val``; ``--split test`` only for what was chosen.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from firststep import condition_number
from firststep.backbones import Mlp
from firststep.data import TaskSource, open_tasks
from firststep.losses import Residuals
from firststep.paper.over_seeds import student_half_width
from firststep.utils.table import Table
from images_as_functions import SIZE, Siren, glyph_tasks
from stacked_maml import InnerLoop, Params, measure, train
from weather_tasks import weather

PERCEPTRON = InnerLoop(("body.1", "body.3", "classifier"), torch.relu, 0.01)
LAST_STEP = 10
SHOWN = (0, 1, 2, 5, 10)
KEYS = ["problem", "method", "subset", "gamma"]


def wave(z: Tensor) -> Tensor:
    return torch.sin(15.0 * z)


@dataclass(frozen=True)
class Problem:
    source: TaskSource
    loop: InnerLoop
    shots: int
    queries: int
    updates: int
    meta_batch: int
    steps: int = 5
    inputs: int = 1

    def network(self, seed: int) -> nn.Module:
        if self.loop.activation is wave:
            return Siren(seed=seed)
        return Mlp(self.inputs, 1, generator=torch.Generator().manual_seed(seed))

    def tasks(self, split: str, numbers: range, seed: int) -> tuple[Tensor, ...]:
        """Return tasks as tensors [tasks, n, ...]."""
        drawn = self.source.tasks(split, shots=self.shots, queries=self.queries, seed=seed)
        each = [drawn[number] for number in numbers]
        return tuple(torch.as_tensor(np.stack([task[part] for task in each])) for part in range(4))


def problem(name: str) -> Problem:
    """Return a problem by name."""
    if name.startswith("sinusoid-"):
        shots = int(name.removeprefix("sinusoid-"))
        return Problem(open_tasks("sinusoid"), PERCEPTRON, shots, 10, updates=2000, meta_batch=25)
    if name == "weather":
        return Problem(TaskSource(name, weather), PERCEPTRON, 10, 10, updates=1000, meta_batch=25, inputs=4)
    # All pixels of a glyph, of which 64 count in the Gram matrix.
    pixels = SIZE**2
    counted = Residuals(rows=64).chosen(torch.zeros(pixels))
    siren = InnerLoop(("first", "second", "out"), wave, 0.01, offset=0.5, rows=counted)
    return Problem(TaskSource(name, glyph_tasks), siren, pixels, pixels, updates=300, meta_batch=3, steps=2)


PROBLEMS = ("sinusoid-10", "sinusoid-5", "weather", "images")


def train_batch(task: Problem, loop: InnerLoop, subset: str, gammas: list[float], seeds: list[int]) -> Params:
    """Return the stacked parameters of all γ and seeds, γ outermost."""

    def draw(update: int) -> tuple[Tensor, ...]:
        numbers = range(update * task.meta_batch, (update + 1) * task.meta_batch)
        by_seed = [task.tasks("train", numbers, seed) for seed in seeds]
        stacked = (torch.stack(parts) for parts in zip(*by_seed, strict=True))
        return tuple(part.repeat(len(gammas), *[1] * (part.dim() - 1)) for part in stacked)

    return train(
        loop,
        [task.network(seed) for _ in gammas for seed in seeds],
        draw,
        steps=task.steps,
        subset=subset,
        gammas=[gamma for gamma in gammas for _ in seeds],
        updates=task.updates,
    )


def rows(task: Problem, found: dict[str, Tensor]) -> Iterator[dict[str, Any]]:
    """Yield a row per training and step: errors, and geometric means of condition numbers over tasks."""
    kappa = {name: condition_number(found[name]).log10().mean(1) for name in ("cls", "all")}
    errors = found["error"]
    psnr = (-10 * errors.log10()).mean(1)
    for number, step in product(range(len(errors)), range(LAST_STEP + 1)):
        row: dict[str, Any] = {"training": number, "step": step}
        row["mean_squared_error"] = errors[number, :, step].mean().item()
        row["psnr"] = psnr[number, step].item()
        for name, values in kappa.items():
            row[f"log10_kappa_{name}"] = values[number, step].item() if step < task.steps else math.nan
        yield row


def over_seeds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return mean and half-width over the seeds of every variant and step, and of the change paired by seed.

    ``change`` and ``psnr_change`` are the differences to the training without the loss of the same seed.
    """
    pairs = ["problem", "method", "seed", "step"]
    quantities = ["mean_squared_error", "psnr"]
    plain = frame.loc[frame["subset"] == "none", [*pairs, *quantities]]
    both = frame.merge(plain, on=pairs, how="left", suffixes=("", "_plain"))
    both["change"] = both["mean_squared_error"] - both["mean_squared_error_plain"]
    both["psnr_change"] = both["psnr"] - both["psnr_plain"]
    return both.groupby([*KEYS, "step"], sort=False, as_index=False).agg(
        seeds=("seed", "nunique"),
        mean_squared_error=("mean_squared_error", "mean"),
        ci95=("mean_squared_error", student_half_width),
        psnr=("psnr", "mean"),
        psnr_ci95=("psnr", student_half_width),
        change=("change", "mean"),
        change_ci95=("change", student_half_width),
        psnr_change=("psnr_change", "mean"),
        psnr_change_ci95=("psnr_change", student_half_width),
        log10_kappa_cls=("log10_kappa_cls", "mean"),
        log10_kappa_all=("log10_kappa_all", "mean"),
    )


def table(result: pd.DataFrame) -> str:
    """Return the table of means: PSNR for images, else mean squared errors."""
    shown = Table([*KEYS, *(f"step {step}" for step in SHOWN), "log₁₀ κ cls", "log₁₀ κ all"], left_aligned=3)
    for key, part in result.groupby(KEYS, sort=False):
        name, width = ("psnr", "psnr_ci95") if key[0] == "images" else ("mean_squared_error", "ci95")
        by_step = part.set_index("step")
        cells = [f"{by_step[name][step]:.3g} ± {by_step[width][step]:.2g}" for step in SHOWN]
        kappas = [
            " → ".join(f"{values.dropna().iloc[end]:.1f}" for end in (0, -1))
            for values in (part["log10_kappa_cls"], part["log10_kappa_all"])
        ]
        shown.add_row(*map(str, key), *cells, *kappas)
    return shown.to_markdown()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="+", choices=["maml", "adam"], default=["maml", "adam"])
    parser.add_argument("--subsets", nargs="+", default=["none", "cls", "all"])
    parser.add_argument("--gammas", nargs="+", type=float, default=[0.01, 0.1, 1.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--updates", type=int, help="instead of the problem's own number")
    parser.add_argument("--steps", type=int, help="trained inner steps, instead of the problem's own")
    parser.add_argument("--adam-rate", type=float, default=0.01)
    parser.add_argument("--split", choices=["val", "test"], default="val")
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--runs", type=Path, default=Path("runs/regression"))
    parser.add_argument("--out", type=Path, default=Path("results/regression/val"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    found: list[dict[str, Any]] = []
    args.runs.mkdir(parents=True, exist_ok=True)
    for name, method, subset in product(args.problems, args.methods, args.subsets):
        task = problem(name)
        task = replace(task, updates=args.updates or task.updates, steps=args.steps or task.steps)
        loop = task.loop if method == "maml" else replace(task.loop, adam=True, rate=args.adam_rate)
        gammas = [0.0] if subset == "none" else args.gammas
        key = (name, method, loop.rate, subset, *gammas, *args.seeds, task.updates, task.steps)
        path = args.runs / f"{'-'.join(map(str, key))}.pt"
        if not path.is_file():
            trained = train_batch(task, loop, subset, gammas, args.seeds)
            torch.save(trained, path.with_suffix(".part"))
            path.with_suffix(".part").replace(path)
        tasks = task.tasks(args.split, range(args.episodes), seed=2_000_003)
        parts = [tuple(each[at : at + 25] for each in tasks) for at in range(0, args.episodes, 25)]
        params = torch.load(path)
        measured = [measure(loop, params, part, LAST_STEP, task.steps) for part in parts]
        together = {each: torch.cat([part[each] for part in measured], 1) for each in measured[0]}
        places = list(product(gammas, args.seeds))
        for row in rows(task, together):
            gamma, seed = places[row.pop("training")]
            found.append(
                {"problem": name, "method": method, "subset": subset, "gamma": gamma, "seed": seed, **row}
            )
        print(f"done: {path.stem}", flush=True)
    frame = pd.DataFrame(found)
    args.out.mkdir(parents=True, exist_ok=True)
    frame.to_csv(args.out / "numbers.csv", index=False, float_format="%.6g")
    result = over_seeds(frame)
    result.to_csv(args.out / "over-seeds.csv", index=False, float_format="%.6g")
    print(table(result))


if __name__ == "__main__":
    main()
