"""Tasks from a ``torch.utils.data.DataLoader`` with worker processes.

A task is one item, drawn in a worker. ``collate_fn=list`` keeps the tasks of a meta-batch apart: they are not
one tensor. Run: python examples/task_loader.py
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

import firststep as fs
from firststep.data import Episodes, open_dataset


class Tasks(Dataset[fs.Task]):
    """A finite part of an endless sequence of episodes; task ``i`` is the same in any process and order."""

    def __init__(self, episodes: Episodes, count: int) -> None:
        self.episodes, self.count = episodes, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> fs.Task:
        if not 0 <= number < self.count:
            raise IndexError(number)
        return fs.Task(*map(torch.from_numpy, self.episodes[number]))


def task_loader(
    split: str, count: int, *, batch: int = 4, workers: int = 0, seed: int = 0
) -> DataLoader[fs.Task]:
    """Return a loader of meta-batches of 5-way 5-shot glyph tasks."""
    images = open_dataset("glyphs").split(split)
    episodes = Episodes(images, ways=5, shots=5, queries=5, seed=seed)
    # spawn, as on Windows and macOS: fork would copy torch's threads in an unknown state.
    start = "spawn" if workers else None
    return DataLoader(
        Tasks(episodes, count), batch, num_workers=workers, collate_fn=list, multiprocessing_context=start
    )


def make_learner() -> fs.MetaLearner:
    generator = torch.Generator().manual_seed(0)
    network = fs.build_backbone("conv4", filters=8, image_size=32, channels=1, generator=generator)
    return fs.MetaLearner(
        network, fs.maml(rate=0.05), steps=3, head="shared", conditioning=fs.Conditioning(), reduction="mean"
    )


@torch.no_grad()
def accuracies(meta: fs.MetaLearner, tasks: list[fs.Task]) -> Tensor:
    """Return the mean query accuracy after 0, 1, ... inner steps."""
    found = []
    for task in tasks:
        with torch.enable_grad():
            params = [
                meta.adapted_params(task.support_x, task.support_y, steps=k) for k in range(meta.steps + 1)
            ]
        answers = [meta.functional(each, task.query_x).logits.argmax(-1) for each in params]
        found.append(torch.stack([(answer == task.query_y).float().mean() for answer in answers]))
    return torch.stack(found).mean(0)


def main(updates: int = 30, workers: int = 2) -> Tensor:
    meta = make_learner()
    optimiser = torch.optim.Adam(meta.parameters(), 3e-3)
    for tasks in task_loader("train", 4 * updates, workers=workers):
        optimiser.zero_grad()
        meta(tasks).backward()
        optimiser.step()
    (tasks,) = task_loader("val", 20, batch=20)
    found = accuracies(meta, tasks)
    print("accuracy after 0, 1, ... steps:", ", ".join(f"{100 * value:.0f} %" for value in found))
    return found


if __name__ == "__main__":
    main()
