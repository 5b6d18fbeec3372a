"""Forecast unseen series: a meta-learned start adapts to a series from a few of its windows.

    python examples/time_series.py        # under two minutes

Each task is one series: a seasonal wave with a trend, noise and outliers, with a period and phase of its own.
From windows of 12 values the network predicts the next 4. The support set is 10 windows of the series' past,
the query set its future. The inner loop descends Huber's loss, which bounds the pull of outliers, with
momentum. Quality is the mean squared error of the forecast, beside repeating the last value.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch import nn

import firststep as fs
from firststep.data import TaskSource
from firststep.evaluation import measure_tasks, to_task

PAST, NEXT, WINDOWS = 12, 4, 10


def series(generator: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Draw a task: windows of one random series, of which the later ones are forecast."""
    length = 2 * WINDOWS + PAST + NEXT - 1
    time = np.arange(length)
    period, phase = generator.uniform(6, 14), generator.uniform(0, 2 * np.pi)
    wave = generator.uniform(0.5, 1.5) * np.sin(2 * np.pi * time / period + phase)
    values = wave + generator.uniform(-0.03, 0.03) * time + generator.normal(0, 0.05, length)
    values[generator.random(length) < 0.03] += 2.0  # outliers
    windows = np.lib.stride_tricks.sliding_window_view(values, PAST + NEXT)
    x, y = windows[:, :PAST], windows[:, PAST:]
    return x[:WINDOWS], y[:WINDOWS], x[WINDOWS:], y[WINDOWS:]


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(PAST, 32), nn.Tanh(), nn.Linear(32, NEXT))


def main() -> dict[str, list[float]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--series", type=int, default=200, help="test series")
    args = parser.parse_args()
    source = TaskSource("series", series)
    training, test = (source.tasks(split, shots=WINDOWS, queries=WINDOWS) for split in ("train", "test"))
    tasks = [to_task(test[i], torch.device("cpu")) for i in range(args.series)]
    rule = fs.momentum(rate=0.05, decay=0.5)
    meta = fs.MetaLearner(network(), rule, loss="huber", query_loss="squared_error", steps=5)
    plain = fs.MetaLearner(network(), rule, loss="huber", query_loss="squared_error", steps=5)
    optimiser = torch.optim.Adam(meta.parameters(), 3e-3)
    for update in range(args.updates):
        optimiser.zero_grad()
        meta([to_task(training[4 * update + i], torch.device("cpu")) for i in range(4)]).backward()
        optimiser.step()
    found = {}
    steps = (0, 1, 5, 20)
    for name, learner in (("random start", plain), ("meta-learned", meta)):
        measured = measure_tasks(learner, tasks, steps=steps, metrics=["mean_squared_error"])
        found[name] = measured.mean().tolist()
        print(f"{name}, after {steps} steps: " + " ".join(f"{value:.3f}" for value in found[name]))
    repeated = np.mean(
        [((test[i].query_x[:, -1:] - test[i].query_y) ** 2).mean() for i in range(args.series)]
    )
    found["last value repeated"] = [float(repeated)]
    print(f"last value repeated: {repeated:.3f}")
    return found


if __name__ == "__main__":
    main()
