"""Sampling against computing: how many episodes can be drawn while Conv4-32 takes one inner step?

    OMP_NUM_THREADS=1 python benchmarks/data_throughput.py

A training run must never wait for its data: the goal is 20 episodes in the time of an inner step, both on
one thread. Episodes are 5-way 5-shot with 16 queries; the inner step is one gradient step of
a Conv4-32 on the support set. glyphs are the real dataset; the 84 px images are noise in a memory
map, because the time does not depend on their content.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from firststep.adaptation import Learner, inner_step
from firststep.backbones import build_backbone
from firststep.cli.terminal import print_wide
from firststep.data import Episodes, Preprocessing, Split, open_dataset
from firststep.network import FunctionalModule
from firststep.rules import maml
from firststep.utils.table import Table

GOAL = 20


def seconds(action: Callable[[int], object], least: float = 0.2, rounds: int = 7) -> float:
    """Return the best of several rounds: other programs can only slow it down."""
    action(0)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < least:
        action(count)
        count += 1
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for index in range(count):
            action(index)
        best = min(best, (time.perf_counter() - start) / count)
    return best


def noise(folder: Path, size: int) -> Split:
    """Make 64 classes of 100 images; miniImageNet has as many classes."""
    recipe = Preprocessing(image_size=size)
    images = np.memmap(folder / "noise.u8", np.uint8, "w+", shape=(64 * 100, size, size, 3))
    images[:] = np.random.default_rng(0).integers(0, 256, (1, size, size, 3), dtype=np.uint8)
    return Split("noise", "train", [str(i) for i in range(64)], [100] * 64, images, recipe)


def compare(split: Split) -> tuple[float, float]:
    """Return the seconds of one episode and of one inner step."""
    episodes = Episodes(split, ways=5, shots=5, queries=16)
    recipe = split.preprocessing
    network = build_backbone(
        "conv4", ways=5, filters=32, channels=recipe.channels, image_size=recipe.image_size
    )
    model, rule = FunctionalModule(network), maml(0.01)
    params = model.params()
    task = episodes[0]
    images, labels = torch.from_numpy(task.support_x), torch.from_numpy(task.support_y)
    step = seconds(lambda _: inner_step(Learner(model, rule, params, {}), images, labels))
    return seconds(episodes.__getitem__), step


def main() -> None:
    torch.set_num_threads(1)
    table = Table(["data", "episode, ms", "inner step, ms", "episodes a step", f"at least {GOAL}"])
    with tempfile.TemporaryDirectory() as folder:
        for name, split in (
            ("glyphs, 32 px grey", open_dataset("glyphs").split("train")),
            ("noise, 84 px RGB", noise(Path(folder), 84)),
        ):
            episode, step = compare(split)
            enough = "yes" if step >= GOAL * episode else "NO"
            table.add_row(name, f"{1e3 * episode:.3f}", f"{1e3 * step:.2f}", f"{step / episode:.0f}", enough)
    print_wide(table)


if __name__ == "__main__":
    main()
