"""Photographs: accuracy before and after, the promise beside what is found, and "none of these".

    python benchmarks/photos.py --data-path CIFAR --out results/photos/cifar-fs-2

All classifiers get the same episodes of the CIFAR-FS test classes (or of `--split val`, where everything was
chosen). "Before" is EfficientNet-Lite0 at 128 px, as builtin:photos was. "none of these" is asked about the
other classes of the split. Features are computed once and cached.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from firststep.data import FeatureSplit
from firststep.evaluation import half_width
from firststep.evaluation._few_shot import PROBES
from firststep.evaluation._internal import NONE_LIMIT, fit_few_shot
from firststep.training import TrainConfig, load_trained, open_data
from firststep.training.provenance import collect_provenance

BEFORE, SMALL, NOW = "efficientnet-lite0 128 px", "efficientnet-lite0 224 px", "efficientnet-lite2 260 px"
BACKGROUND = {BEFORE: None, SMALL: "builtin:photos-small", NOW: "builtin:photos"}
SEED = 36


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-path", required=True, type=Path)
    parser.add_argument("--cache", type=Path, help="folder for pixels and features")
    parser.add_argument("--split", default="test", choices=["val", "test"])
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    begun = time.monotonic()
    splits = {name: _features(name, options) for name in BACKGROUND}
    counts = splits[NOW].counts
    rows = []
    for ways, shots in ((5, 1), (5, 2), (5, 5), (5, 10), (10, 5), (len(counts), 5)):
        episodes = options.episodes if ways <= 5 else options.episodes // 2
        for name, split in splits.items():
            run = BACKGROUND[name]
            background = None if run is None else load_trained(run).background
            found = [
                _measure(split, background, *episode) for episode in _episodes(counts, ways, shots, episodes)
            ]
            for measure in found[0]:
                values = np.array([each[measure] for each in found])
                mean, half = float(values.mean()), float(half_width(values))
                rows.append([ways, shots, name, measure, round(mean, 4), round(half, 4), len(values)])
            print(*rows[-len(found[0]) :], sep="\n", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "numbers.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["ways", "shots", "features", "measure", "mean", "half_width", "episodes"])
        table.writerows(rows)
    settings = {
        "command": shlex.join(["python", "benchmarks/photos.py", *sys.argv[1:]]),
        "images_per_class": int(min(counts)),
        "classes": len(counts),
        "seed": SEED,
        "threads": options.threads,
        **collect_provenance(),
        "seconds": round(time.monotonic() - begun),
    }
    (options.out / "settings.json").write_text(json.dumps(settings, indent=2) + "\n")


def _features(name: str, options: argparse.Namespace) -> FeatureSplit:
    backbone, size, _ = name.split()
    config = TrainConfig(
        data="cifar-fs",
        data_path=options.data_path,
        cache=options.cache,
        image_size=int(size),
        backbone=backbone,
        partial=True,
    )
    split = open_data(config).split(options.split)
    assert isinstance(split, FeatureSplit)
    return split


def _episodes(counts: np.ndarray, ways: int, shots: int, episodes: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Return support and query rows [ways, ...], and rows of a third of the other classes' images."""
    generator = np.random.default_rng([SEED, ways, shots])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    for _ in range(episodes):
        order = generator.permutation(len(counts))
        drawn = [starts[c] + generator.permutation(counts[c]) for c in order]
        support = np.stack([rows[:shots] for rows in drawn[:ways]])
        query = np.stack([rows[shots : min(counts)] for rows in drawn[:ways]])
        others = np.concatenate([rows[::3] for rows in drawn[ways:]] or [np.zeros(0, int)])
        yield support, query, others


def _measure(
    split: FeatureSplit,
    background: torch.Tensor | None,
    support: np.ndarray,
    query: np.ndarray,
    others: np.ndarray,
) -> dict[str, float]:
    def features(rows: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(split.inputs(rows.ravel()))

    ways = len(support)
    labels, asked = (torch.arange(ways).repeat_interleave(rows.shape[1]) for rows in (support, query))
    fitted = fit_few_shot(features(support), labels, background=background)
    outputs = fitted.head(features(query))
    accuracy = (outputs[:, :ways].argmax(1) == asked).double().mean().item()
    found = {"average": accuracy}
    for name, probe in PROBES.items():
        answers = probe(features(support), labels)(features(query)).argmax(1)
        found[f"{name} on plain features"] = (answers == asked).double().mean().item()
    if fitted.held_out is not None:
        promise = fitted.held_out.promise
        low, high = promise.interval
        found |= {"promised": promise.accuracy, "within the interval": float(low <= accuracy <= high)}
        found |= {"above it": float(accuracy > high), "below it": float(accuracy < low)}
    if fitted.head.form.has_none and len(others):
        known, strange = outputs[:, -1], fitted.head(features(others))[:, -1]
        found["none: kept"] = (known <= NONE_LIMIT).double().mean().item()
        found["none: false accepts"] = (strange <= NONE_LIMIT).double().mean().item()
        at95 = known.double().quantile(0.95)
        found["none: false accepts at 95 % kept"] = (strange <= at95).double().mean().item()
        greater = (strange[:, None] > known).double() + 0.5 * (strange[:, None] == known).double()
        found["none: AUROC"] = greater.mean().item()
    return found


if __name__ == "__main__":
    main()
