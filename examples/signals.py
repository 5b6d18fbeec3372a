"""Your own arrays and your own network: few-shot classes of one-dimensional signals.

Made up here are 40 kinds of vibration, each a sum of three tones; a recording has them with random phases in
noise. The learner is trained on 24 kinds and tested on 10 that it has never met.

Run: python examples/signals.py
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

import firststep as fs
from firststep.data import Dataset, Episodes, from_arrays
from firststep.evaluation import EvaluationSettings, evaluate, to_task

WAYS, SHOTS, QUERIES = 5, 5, 5
KINDS, RECORDINGS, LENGTH = 40, 12, 64


def vibrations(seed: int = 0) -> Dataset:
    """Return signals, float32 [480, 1, 64], with their labels."""
    rng = np.random.default_rng(seed)
    tones = rng.uniform(1, 16, (KINDS, 1, 3, 1))
    strengths = rng.uniform(0.5, 1.5, (KINDS, 1, 3, 1))
    phases = rng.uniform(0, 2 * np.pi, (KINDS, RECORDINGS, 3, 1))
    time = np.linspace(0, 1, LENGTH)
    clean = (strengths * np.sin(2 * np.pi * tones * time + phases)).sum(2)
    noisy = clean + 0.3 * rng.standard_normal(clean.shape)
    labels = np.repeat(np.arange(KINDS), RECORDINGS)
    splits = {"train": range(24), "val": range(24, 30), "test": range(30, 40)}
    return from_arrays(noisy.reshape(-1, 1, LENGTH), labels, splits, name="vibrations")


class SignalNetwork(nn.Module):
    """Two convolutions over time, the mean over time, a linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, 32, 15, stride=2), nn.ReLU(), nn.Conv1d(32, 32, 5), nn.ReLU())
        self.classifier = nn.Linear(32, WAYS)

    def forward(self, signals: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.body(signals).mean(2))
        return logits


def main(updates: int = 150) -> dict[str, float]:
    """Return the test accuracy after five steps, untrained and trained."""
    data = vibrations()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = SignalNetwork()
    meta = fs.MetaLearner(network, fs.maml(rate=0.5), steps=3, conditioning=fs.Conditioning(), head="zero")
    optimiser = torch.optim.Adam(meta.parameters(), 2e-3)
    tasks = Episodes(data.split("train"), ways=WAYS, shots=SHOTS, queries=QUERIES)

    def accuracy() -> float:
        tested = evaluate(
            meta, data, EvaluationSettings(shots=SHOTS, queries=QUERIES, steps=(5,), episodes=40)
        )
        return float(tested.measurement.mean()[0])

    before = accuracy()
    for update in range(updates):
        optimiser.zero_grad()
        meta([to_task(tasks[2 * update + i], meta.device) for i in range(2)]).backward()
        optimiser.step()
    after = accuracy()
    print(f"kinds never met: {100 * after:.0f} % right after five steps, {100 * before:.0f} % untrained")
    return {"before": before, "after": after}


if __name__ == "__main__":
    main()
