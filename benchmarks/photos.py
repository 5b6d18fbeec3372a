"""Few photographs of new classes: meta-learned heads beside simple probes on the same frozen features.

    python benchmarks/photos.py --plain RUN --conditioned RUN --data-path FOLDER --out results/photos/NAME

Everything that is chosen (strength of the probes, rate of the head from scratch) is chosen on episodes of the
validation classes; then the test episodes are looked at, once. All learners get the same episodes.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from firststep.data import Episodes, FeatureSplit
from firststep.evaluation import Predict, half_width, logistic, measure_tasks, nearest_means, ridge, to_task
from firststep.evaluation._internal import TEST_SEED
from firststep.meta_learner import MetaLearner
from firststep.task import Task
from firststep.training import VALIDATION_SEED, build_meta_learner, data_for, load_trained
from firststep.training.provenance import collect_provenance

STRENGTHS = {"ridge": (0.1, 0.3, 1.0, 3.0), "logistic": (0.003, 0.01, 0.03, 0.1)}
FROM_SCRATCH = (0.003, 0.01, 0.03, 0.1)
"""Rates of the head from scratch, which takes as many steps as the others."""
STEPS = (0, 1, 2, 3, 5, 10)
CPU = torch.device("cpu")

Probe = Callable[..., Predict]
PROBES: dict[str, Probe] = {"nearest means": nearest_means, "ridge": ridge, "logistic": logistic}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--plain", required=True, help="run without conditioning")
    parser.add_argument("--conditioned", required=True, help="the same with it")
    parser.add_argument("--data-path", required=True, type=Path)
    parser.add_argument("--shots", type=int, nargs="+", default=[5, 1])
    parser.add_argument("--episodes", type=int, default=600)
    parser.add_argument("--validation-episodes", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    begun = time.monotonic()
    trained = {"plain": load_trained(options.plain), "conditioned": load_trained(options.conditioned)}
    config = trained["plain"].config
    data = data_for(trained["plain"], path=options.data_path)
    validation, test = data.split("val"), data.split("test")
    assert isinstance(validation, FeatureSplit)
    assert isinstance(test, FeatureSplit)

    def from_scratch(rate: float) -> MetaLearner:
        untrained = replace(config, head="per-class", conditioning="none", rate=rate)
        return build_meta_learner(untrained, image_size=data.image_size, channels=data.channels, device=CPU)

    rows: list[dict[str, Any]] = []
    for shots in options.shots:
        choosing = partial(_tasks, validation, shots, VALIDATION_SEED, options.validation_episodes)
        testing = partial(_tasks, test, shots, TEST_SEED, options.episodes)
        chosen: dict[str, dict[str, float]] = {"nearest means": {}}
        for name, strengths in STRENGTHS.items():
            accuracies = {s: _probe(PROBES[name], choosing(), strength=s).mean() for s in strengths}
            chosen[name] = {"strength": max(accuracies, key=accuracies.__getitem__)}
            print(shots, "shots,", name, "on validation classes:", accuracies, flush=True)
        last = {rate: _steps(from_scratch(rate), choosing())[:, -1].mean() for rate in FROM_SCRATCH}
        rate = max(last, key=last.__getitem__)
        print(shots, "shots, head from scratch on validation classes:", last, flush=True)
        for name, setting in chosen.items():
            accuracy = _probe(PROBES[name], testing(), **setting)
            rows.append(_row(shots, name, setting, None, accuracy))
            print(rows[-1], flush=True)
        learners = {name: (model.meta, model.config.rate) for name, model in trained.items()}
        learners["from scratch"] = (from_scratch(rate), rate)
        for name, (meta, own_rate) in learners.items():
            per_step = _steps(meta, testing())
            for step, accuracy in zip(STEPS, per_step.T, strict=True):
                rows.append(_row(shots, name, {"rate": own_rate}, step, accuracy))
            print(*rows[-len(STEPS) :], sep="\n", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "numbers.csv", "w", newline="") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    settings = {
        "command": shlex.join(["python", "benchmarks/photos.py", *sys.argv[1:]]),
        "data": {
            "name": data.name,
            "fingerprint": data.fingerprint,
            "images": {"val": len(validation.features), "test": len(test.features)},
        },
        "seeds": {"test": TEST_SEED, "validation": VALIDATION_SEED, "training": config.seed},
        "checkpoints": {name: {"update": m.update, "digest": m.checkpoint} for name, m in trained.items()},
        "config": {k: v for k, v in config.to_json().items() if k not in ("data_path", "cache")},
        "threads": options.threads,
        **collect_provenance(),
        "seconds": round(time.monotonic() - begun),
    }
    (options.out / "settings.json").write_text(json.dumps(settings, indent=2) + "\n")


def _tasks(split: FeatureSplit, shots: int, seed: int, episodes: int) -> Iterator[Task]:
    source = Episodes(split, ways=5, shots=shots, queries=16, seed=seed)
    return (to_task(source[number], CPU) for number in range(episodes))


def _probe(probe: Probe, tasks: Iterator[Task], **setting: float) -> np.ndarray:
    """Return the accuracy on each task."""
    found = []
    for task in tasks:
        predicted = probe(task.support_x, task.support_y, **setting)(task.query_x).argmax(1)
        found.append((predicted == task.query_y).double().mean().item())
    return np.array(found)


def _steps(meta: MetaLearner, tasks: Iterator[Task]) -> np.ndarray:
    """Return the accuracy on each task after each of the steps."""
    return measure_tasks(meta, tasks, steps=STEPS, metrics=("accuracy",)).accuracy


def _row(
    shots: int, learner: str, setting: dict[str, Any], step: int | None, accuracy: np.ndarray
) -> dict[str, Any]:
    return {
        "shots": shots,
        "learner": learner,
        "setting": " ".join(f"{name}={value:g}" for name, value in setting.items()),
        "step": "" if step is None else step,
        "accuracy": round(100 * float(accuracy.mean()), 2),
        "half_width": round(100 * float(half_width(accuracy)), 2),
        "episodes": len(accuracy),
    }


if __name__ == "__main__":
    main()
