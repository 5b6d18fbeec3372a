"""A user's code against the installed package: mypy and pyright check it (test_typing)."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np
import torch
from torch import Tensor, nn

import firststep as fs
from firststep.data import Episodes, open_dataset
from firststep.evaluation import Evaluation, EvaluationSettings, register_metric
from firststep.functional import TaskReport
from firststep.training import LoggedRun, Run, TrainConfig, TrainedModel, load_trained, register_logger, train


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(256, 32), nn.ReLU())
        self.classifier = nn.Linear(32, 5)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.body(images))
        return logits


def without_nan(grads: dict[str, Tensor], params: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: grad.nan_to_num() for name, grad in grads.items()}


rule = fs.chain(fs.stateless(without_nan), fs.clip_by_norm(1.0), fs.meta_sgd(rate=0.1))
assert_type(rule, fs.Rule)
meta = fs.MetaLearner(Network(), rule, steps=2, conditioning=fs.Conditioning(weight=0.5), head="shared")
optimiser = torch.optim.Adam(meta.parameters(), 1e-3)
images, labels = torch.randn(10, 1, 16, 16), torch.arange(5).repeat(2)
optimiser.zero_grad()
loss = meta([fs.Task(images, labels, images, labels)])
assert isinstance(loss, Tensor)
loss.backward()
optimiser.step()
both = meta([(images, labels, images, labels)], return_report=True)
report: TaskReport = both[1]
assert_type(report.query_loss, Tensor)
assert_type(meta.adapt(images, labels, steps=1), nn.Module)
assert_type(meta.condition_number(images, labels, "cls"), Tensor)
assert_type(fs.conditioning_loss(torch.randn(4, 8), torch.randn(4, 5), labels[:4]), Tensor)

dataset = open_dataset("glyphs", image_size=16)
episode = Episodes(dataset.split("val"), ways=5, shots=1, queries=3, seed=0)[0]
assert isinstance(episode.support_y, np.ndarray)  # targets of regression may be tuples or dicts


@register_logger("typed")
class Lines:
    def __init__(self, run: LoggedRun) -> None:
        self.path: Path = run.folder / "lines.txt"

    def write(self, update: int, values: object) -> None: ...
    def close(self) -> None: ...


@register_metric("confidence")
def confidence(state: object) -> Tensor:
    return torch.zeros(())


def meta_train(folder: Path) -> Evaluation:
    config = TrainConfig(filters=4, image_size=16, updates=1, log="none")
    assert_type(train(config, folder), Run)
    trained = load_trained(folder)
    assert_type(trained, TrainedModel)
    return trained.evaluate(dataset, EvaluationSettings(steps=(0, 1), episodes=2))
