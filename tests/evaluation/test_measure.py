"""Known answers: learners whose accuracy is set by construction confirm means and intervals."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from firststep import FunctionalModule, Task, maml
from firststep.evaluation import measure_tasks
from firststep.evaluation.measure import half_width
from firststep.evaluation.steps import choose_steps, held_out_folds
from peaks import PEAK

WAYS = 4


class Reader(nn.Module):
    """Says the class that is written into the picture: its accuracy is what the task's author wants."""

    def __init__(self) -> None:
        super().__init__()
        self.classifier = nn.Linear(WAYS, WAYS)
        with torch.no_grad():
            self.classifier.weight.copy_(100 * torch.eye(WAYS))
            self.classifier.bias.zero_()

    def forward(self, pictures: Tensor) -> Tensor:
        return self.classifier(pictures.flatten(1))


def task_with_accuracy(right: int, queries: int = 20, seed: int = 0) -> Task:
    """A task whose first ``right`` queries carry their label and whose other queries carry a wrong one."""
    labels = torch.arange(queries) % WAYS
    written = torch.where(torch.arange(queries) < right, labels, (labels + 1) % WAYS)
    support = torch.arange(WAYS)
    noise = 0.01 * torch.rand(WAYS, WAYS, generator=torch.Generator().manual_seed(seed))
    return Task(torch.eye(WAYS) + noise, support, torch.eye(WAYS)[written], labels)


def measured(rights: list[int], steps: tuple[int, ...] = (0, 1)) -> np.ndarray:
    model = FunctionalModule(Reader())
    tasks = [task_with_accuracy(right, seed=i) for i, right in enumerate(rights)]
    result = measure_tasks(model, maml(1e-6), model.params(), {}, tasks, steps=steps)
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


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    """Right with probability 0.7: of 400 intervals over 60 episodes, about 95 % contain 0.7."""
    rng = np.random.default_rng(0)
    accuracies = rng.binomial(20, 0.7, size=(60, 400)) / 20
    covered = np.abs(accuracies.mean(0) - 0.7) <= half_width(accuracies)
    assert 0.92 <= covered.mean() <= 0.98


def test_steps_are_counted_from_the_start_in_any_order() -> None:
    model = FunctionalModule(nn.Sequential(nn.Flatten(), nn.Linear(WAYS, WAYS)), classifier="1")
    tasks = [task_with_accuracy(20)]
    arguments = (model, maml(5.0), model.params(), {}, tasks)
    all_steps = measure_tasks(*arguments, steps=range(8))
    some = measure_tasks(*arguments, steps=(7, 0, 3))
    assert some.steps == (0, 3, 7)
    np.testing.assert_array_equal(some.accuracy[0], all_steps.accuracy[0, [0, 3, 7]])
    assert all_steps.accuracy[0, -1] == 1


MEMORY_PROGRAM = (
    PEAK
    + """
import torch
from firststep import FunctionalModule, Task, maml
from firststep.evaluation import measure_tasks
torch.set_num_threads(1)
g = torch.Generator().manual_seed(0)
model = FunctionalModule(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(400, 4)), classifier="1")
peaks = []
def tasks():
    for number in range(100):
        pictures, labels = torch.randn(2, 4, 400, generator=g), torch.arange(4)
        yield Task(pictures[0], labels, pictures[1], labels)
        peaks.append(peak())
measure_tasks(model, maml(), model.params(), {}, tasks(), steps=(0, 1, 100))
print(peaks[10], peaks[-1])
"""
)


def test_memory_is_flat_over_100_episodes_of_100_steps() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY_PROGRAM], capture_output=True, text=True, check=True)
    early, late = map(int, done.stdout.split())
    assert late < 1.02 * early


def test_folds_hold_out_one_of_each_class() -> None:
    labels = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2])
    folds = held_out_folds(labels)
    assert len(folds) == 2  # class 2 has two
    for fold in folds:
        assert sorted(labels[fold].tolist()) == [0, 1, 2]
    assert not (folds[0] & folds[1]).any()
    assert held_out_folds(torch.tensor([0, 1])) == []


def test_automatic_steps_follow_the_held_out_loss() -> None:
    """Classes that are learned slowly want many steps; an inner rate that diverges wants none."""
    g = torch.Generator().manual_seed(1)
    labels = torch.arange(3).repeat_interleave(4)
    images = torch.eye(3)[labels].repeat(1, 3) + 0.1 * torch.randn(12, 9, generator=g)
    model = FunctionalModule(nn.Sequential(nn.Flatten(), nn.Linear(9, 3)), classifier="1")
    start = {name: torch.zeros_like(value) for name, value in model.params().items()}
    patient = choose_steps(model, maml(0.1), start, {}, images, labels, trained=5, longest=8)
    assert patient.steps == 8
    assert patient.folds == 4
    assert len(patient.losses) == 9
    assert patient.losses == tuple(sorted(patient.losses, reverse=True))
    swapped = choose_steps(model, maml(1.0), start, {}, images, labels.flip(0), trained=5, longest=3)
    assert swapped.steps == int(np.argmin(swapped.losses))


def test_one_shot_takes_the_trained_number_of_steps() -> None:
    task = task_with_accuracy(20)
    model = FunctionalModule(Reader())
    choice = choose_steps(
        model, maml(), model.params(), {}, task.support_x, task.support_y, trained=5, longest=9
    )
    assert (choice.steps, choice.losses, choice.folds) == (5, (), 0)
