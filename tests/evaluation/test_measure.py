"""Means and intervals against learners whose accuracy is known by construction."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from firststep import MetaLearner, Task, maml
from firststep.evaluation import half_width, measure_tasks
from peaks import PEAK

WAYS = 4


class Reader(nn.Module):
    """Predicts the class that is encoded in the image, so a task determines its accuracy."""

    def __init__(self) -> None:
        super().__init__()
        self.classifier = nn.Linear(WAYS, WAYS)
        with torch.no_grad():
            self.classifier.weight.copy_(100 * torch.eye(WAYS))
            self.classifier.bias.zero_()

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(images.flatten(1))


def task_with_accuracy(right: int, queries: int = 20, seed: int = 0) -> Task:
    """Return a task whose first ``right`` queries encode their label and the others a wrong one."""
    labels = torch.arange(queries) % WAYS
    written = torch.where(torch.arange(queries) < right, labels, (labels + 1) % WAYS)
    support = torch.arange(WAYS)
    noise = 0.01 * torch.rand(WAYS, WAYS, generator=torch.Generator().manual_seed(seed))
    return Task(torch.eye(WAYS) + noise, support, torch.eye(WAYS)[written], labels)


def measured(rights: list[int], steps: tuple[int, ...] = (0, 1)) -> np.ndarray:
    tasks = [task_with_accuracy(right, seed=i) for i, right in enumerate(rights)]
    result = measure_tasks(MetaLearner(Reader(), maml(1e-6)), tasks, steps=steps)
    assert result.steps == steps
    np.testing.assert_allclose(result.mean(), result.accuracy.mean(0))
    np.testing.assert_allclose(result.half_width(), half_width(result.accuracy))
    return result.accuracy


def test_mean_and_half_width_of_known_accuracies() -> None:
    rights = [20, 10, 5, 15, 0, 20, 12]
    accuracy = measured(rights)
    expected = [right / 20 for right in rights]
    assert accuracy[:, 0].tolist() == pytest.approx(expected)
    assert half_width(accuracy)[0] == pytest.approx(1.96 * statistics.stdev(expected) / math.sqrt(7))


def test_95_percent_of_intervals_cover_the_true_accuracy() -> None:
    """Queries are right with probability 0.7; there are 400 intervals over 60 episodes each."""
    rng = np.random.default_rng(0)
    accuracies = rng.binomial(20, 0.7, size=(60, 400)) / 20
    covered = np.abs(accuracies.mean(0) - 0.7) <= half_width(accuracies)
    assert 0.92 <= covered.mean() <= 0.98


def test_steps_may_be_given_in_any_order() -> None:
    meta = MetaLearner(nn.Sequential(nn.Flatten(), nn.Linear(WAYS, WAYS)), maml(5.0))
    tasks = [task_with_accuracy(20)]
    all_steps = measure_tasks(meta, tasks, steps=range(8))
    some = measure_tasks(meta, tasks, steps=(7, 0, 3))
    assert some.steps == (0, 3, 7)
    np.testing.assert_array_equal(some.accuracy[0], all_steps.accuracy[0, [0, 3, 7]])
    assert all_steps.accuracy[0, -1] == 1


MEMORY_PROGRAM = (
    PEAK
    + """
import torch
from firststep import MetaLearner, Task, maml
from firststep.evaluation import measure_tasks
torch.set_num_threads(1)
g = torch.Generator().manual_seed(0)
meta = MetaLearner(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(400, 4)), maml())
peaks = []
def tasks():
    for number in range(100):
        images, labels = torch.randn(2, 4, 400, generator=g), torch.arange(4)
        yield Task(images[0], labels, images[1], labels)
        peaks.append(peak())
measure_tasks(meta, tasks(), steps=(0, 1, 100))
print(peaks[10], peaks[-1])
"""
)


def test_memory_does_not_grow_over_100_episodes_of_100_steps() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY_PROGRAM], capture_output=True, text=True, check=True)
    early, late = map(int, done.stdout.split())
    assert late < 1.02 * early
