"""Images as functions: a network learns pixel coordinates → grey value, from a meta-learned start.

    python examples/images_as_functions.py                          # glyphs; under five minutes
    python examples/images_as_functions.py --photos cifar100/test   # folders of photographs, by class

After Tancik et al., "Learned Initializations for Optimizing Coordinate-Based Neural Representations" (CVPR
2021): a standard start needs hundreds of steps per image, a meta-learned one a few. The loss is the squared
error, every pixel of an image is a sample of its task, and quality is the PSNR in dB after each number of
inner steps, on images of classes that were not trained on. ``--gamma`` adds the conditioning loss on the last
layer, with 128 random pixels of each image.
"""

from __future__ import annotations

import argparse
import math
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import firststep as fs
from firststep.data import TaskSource, open_dataset
from firststep.evaluation import measure_tasks, to_task

SIZE = 16
STEPS = (0, 1, 2, 5, 10)


class Siren(nn.Module):
    """Sines of linear layers (Sitzmann et al., 2020): coordinates in [-1, 1]² → values around [0, 1]."""

    def __init__(
        self, inputs: int = 2, outputs: int = 1, units: int = 64, frequency: float = 15.0, seed: int = 0
    ) -> None:
        super().__init__()
        self.frequency = frequency
        self.first, self.second = nn.Linear(inputs, units), nn.Linear(units, units)
        self.out = nn.Linear(units, outputs)
        generator = torch.Generator().manual_seed(seed)
        nn.init.uniform_(self.first.weight, -1 / inputs, 1 / inputs, generator=generator)
        bound = math.sqrt(6 / units) / frequency
        for layer in (self.second, self.out):
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)

    def forward(self, places: Tensor) -> Tensor:
        hidden = torch.sin(self.frequency * self.first(places))
        return self.out(torch.sin(self.frequency * self.second(hidden))) + 0.5


def coordinates(size: int = SIZE) -> np.ndarray:
    axis = np.linspace(-1, 1, size, dtype=np.float32)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)


@cache
def _glyphs(split: str) -> np.ndarray:
    images: np.ndarray = np.asarray(open_dataset("glyphs", image_size=SIZE).split(split).images)
    return images


def glyph_tasks(generator: np.random.Generator, split: str) -> tuple[np.ndarray, ...]:
    """Draw a task from one glyph: all its pixels are the support set and the query set."""
    images = _glyphs(split)
    return _as_task(images[generator.integers(len(images))])


def photo_tasks(folder: Path) -> TaskSource:
    """Return tasks from grey photographs in class folders; a seeded half of the classes is for training."""
    data = open_dataset("folder", folder, image_size=SIZE, channels=1)
    images = {split: np.asarray(data.split(split).images) for split in ("train", "test")}

    def photos(generator: np.random.Generator, split: str) -> tuple[np.ndarray, ...]:
        return _as_task(images[split][generator.integers(len(images[split]))])

    return TaskSource("photos", photos, ("train", "test"))


def _as_task(image: np.ndarray) -> tuple[np.ndarray, ...]:
    values = image.reshape(-1, 1).astype(np.float32) / 255
    return coordinates(image.shape[0]), values, coordinates(image.shape[0]), values


def main() -> dict[str, list[float]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=Path, help="folder with a folder of images per class")
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--images", type=int, default=50, help="test images")
    parser.add_argument("--gamma", type=float, nargs="*", default=[0.0, 0.01])
    args = parser.parse_args()
    source = TaskSource("glyph_tasks", glyph_tasks) if args.photos is None else photo_tasks(args.photos)
    training = source.tasks("train", shots=SIZE**2, queries=SIZE**2)
    test = source.tasks("test", shots=SIZE**2, queries=SIZE**2)
    tasks = [to_task(test[i], torch.device("cpu")) for i in range(args.images)]
    start = fs.MetaLearner(Siren(), fs.maml(rate=0.01), loss="squared_error")
    results = {"a standard start": start}
    for gamma in args.gamma:
        conditioning = fs.Conditioning(subset="cls", weight=gamma, rows=128) if gamma else None
        meta = fs.MetaLearner(
            Siren(), fs.maml(rate=0.01), loss="squared_error", steps=2, conditioning=conditioning
        )
        optimiser = torch.optim.Adam(meta.parameters(), 1e-3)
        for update in range(args.updates):
            optimiser.zero_grad()
            batch = [to_task(training[3 * update + i], torch.device("cpu")) for i in range(3)]
            meta(batch).backward()
            optimiser.step()
        results[f"conditioning, γ = {gamma:g}" if gamma else "meta-learned"] = meta
    found = {}
    print(f"PSNR in dB on {args.images} images of {source.name} after {STEPS} steps")
    for name, meta in results.items():
        measured = measure_tasks(meta, tasks, steps=STEPS, metrics=["psnr", "condition_number"])
        found[name] = measured.mean("psnr").tolist()
        values = " ".join(f"{value:5.1f}" for value in found[name])
        print(f"{name:24} {values}   κ {measured.mean('condition_number')[0]:.2g}")
    return found


if __name__ == "__main__":
    main()
