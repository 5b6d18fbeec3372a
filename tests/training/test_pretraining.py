"""Pretraining and ``init``: the plain classifier, its resume, and what meta-training takes from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

from firststep import FirststepError, Task
from firststep.backbones import build_backbone
from firststep.data import Draws
from firststep.evaluation._internal import nearest_means_accuracy
from firststep.network import FunctionalModule
from firststep.training import PretrainConfig, PretrainProgress, open_data, open_run, pretrain, train
from runs import TINY, same_run
from warm_cli import WarmCommands

SMALL = PretrainConfig(
    filters=4, image_size=16, epochs=2, batch=512, validation_episodes=3, shots=2, queries=3, threads=1
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretrain(SMALL, tmp_path_factory.mktemp("pretrained") / "whole").folder


def test_it_is_sgd_on_all_training_classes(tmp_path: Path) -> None:
    """One epoch without augmentation, against a loop written with torch's own parts."""
    # Few and small steps: rounding grows from one to the next.
    config = replace(SMALL, epochs=1, augment=False, batch=4096, rate=0.01)
    saved = load_file(pretrain(config, tmp_path / "run").checkpoint_path("last"))
    data = open_data(config)
    split = data.split("train")
    generator = torch.Generator().manual_seed(config.seed)
    network = build_backbone(
        "conv4", ways=len(split.classes), image_size=16, channels=1, filters=4, generator=generator
    )
    # Among equal pixels, a max-pool's choice depends on their order in memory.
    network = network.to(memory_format=torch.channels_last)
    labels = torch.from_numpy(np.repeat(np.arange(len(split.classes)), split.counts))
    order = np.array(Draws("pretraining", "glyphs", 0, 0).distinct(len(labels), len(labels)))
    assert sorted(order.tolist()) == list(range(len(labels)))
    steps = len(labels) // config.batch
    optimizer = torch.optim.SGD(
        network.parameters(), config.rate, momentum=0.9, nesterov=True, weight_decay=config.weight_decay
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        rows = order[step * config.batch : (step + 1) * config.batch]
        images = torch.from_numpy(split.preprocessing.normalise(split.pixels(rows)))
        images = images.contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad()
        F.cross_entropy(network(images), labels[rows]).backward()
        optimizer.step()
        schedule.step()
    for name, expected in network.state_dict().items():
        torch.testing.assert_close(saved[f"network.{name}"], expected, rtol=1e-3, atol=1e-4)


def test_it_learns_logs_and_keeps_the_best(folder: Path) -> None:
    entries = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [entry["epoch"] for entry in entries] == [1, 2]
    assert entries[-1]["loss"] < entries[0]["loss"]
    accuracies = [entry["validation_accuracy"] for entry in entries]
    record = json.loads((folder / "pretrain.json").read_text())
    assert record["config"]["filters"] == 4
    assert record["data_fingerprint"]
    run = pretrain(resume=folder)  # it is done: nothing changes
    assert run.load("best", torch.device("cpu")).update == 1 + accuracies.index(max(accuracies))
    assert run.load("last", torch.device("cpu")).update == 2


def test_cut_at_any_step_and_resumed_it_ends_bit_identical(folder: Path, tmp_path: Path) -> None:
    class Cut(Exception):
        pass

    def cut_in_the_second_epoch(progress: PretrainProgress) -> None:
        if (progress.epoch, progress.step) == (2, 3):
            raise Cut

    with pytest.raises(Cut):
        pretrain(SMALL, tmp_path / "cut", on_step=cut_in_the_second_epoch)
    pretrain(resume=tmp_path / "cut")
    same_run(folder, tmp_path / "cut")


def test_nearest_means_are_those_of_the_normalised_features() -> None:
    generator = torch.Generator().manual_seed(0)
    network = build_backbone("conv4", ways=3, image_size=16, channels=1, filters=4, generator=generator)
    x = torch.randn(18, 1, 16, 16, generator=generator)
    y = torch.arange(3).repeat_interleave(2)
    task = Task(x[:6], y, x[6:], torch.randint(0, 3, (12,), generator=generator))
    support, query = (network.blocks(part).flatten(1).detach() for part in (x[:6], x[6:]))
    expected = 0
    for features, label in zip(query, task.query_y.tolist(), strict=True):
        distances = []
        for c in range(3):
            mean = sum(s / s.norm() for s in support[y == c]) / 2
            distances.append(float((features / features.norm() - mean).norm()))
        expected += int(np.argmin(distances)) == label
    assert nearest_means_accuracy(FunctionalModule(network), task) == pytest.approx(expected / 12)


@pytest.mark.parametrize("head", ["per-class", "shared"])
def test_meta_training_starts_from_it(head: str, folder: Path, tmp_path: Path) -> None:
    config = replace(TINY, init=str(folder), head=head, updates=1, validate_every=1, outer_rate=1e-9)
    kept: list[list[str]] = []
    run = train(config, tmp_path / "run", on_init=kept.append)
    weights = load_file(run.checkpoint_path("last"))
    for name, value in load_file(folder / "checkpoints" / "best.safetensors").items():
        if not name.startswith("network.classifier"):
            torch.testing.assert_close(weights[name], value, rtol=0, atol=1e-6)
    assert kept == [["network.classifier.weight", "network.classifier.bias"]]
    assert open_run(run.folder).record.init_digest


def test_init_from_a_run_and_from_a_file(folder: Path, tmp_path: Path) -> None:
    first = train(TINY, tmp_path / "first")
    best = load_file(first.checkpoint_path("best"))
    plain = {name.removeprefix("network."): value for name, value in best.items()}
    save_file(plain, tmp_path / "weights.safetensors")
    small = replace(TINY, updates=1, validate_every=1, outer_rate=1e-9)
    digests = set()
    for number, source in enumerate((first.folder, tmp_path / "weights.safetensors")):
        run = train(replace(small, init=str(source)), tmp_path / str(number))
        weights = load_file(run.checkpoint_path("last"))
        torch.testing.assert_close(weights["network.classifier.weight"], best["network.classifier.weight"])
        digests.add(run.record.init_digest)
    assert len(digests) == 1


def test_what_does_not_fit_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    wider = replace(TINY, init=str(folder), filters=5)
    with pytest.raises(FirststepError, match=r"does not fit the network: blocks\.0\.conv.* has shape \(4"):
        train(wider, tmp_path / "wider")
    assert not (tmp_path / "wider" / "run.json").exists()
    with pytest.raises(FirststepError, match="there is no such file or folder; give a folder of"):
        train(replace(TINY, init=str(tmp_path / "absent")), tmp_path / "run")
    (tmp_path / "text.safetensors").write_text("no tensors")
    with pytest.raises(FirststepError, match=r"text\.safetensors cannot be read"):
        train(replace(TINY, init=str(tmp_path / "text.safetensors")), tmp_path / "run")
    save_file({"other": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(FirststepError, match=r"other has shape .* no counterpart here"):
        train(replace(TINY, init=str(tmp_path / "other.safetensors")), tmp_path / "run")


def test_a_run_that_lost_its_checkpoint_does_not_go_on_from_other_weights(tmp_path: Path) -> None:
    first = train(TINY, tmp_path / "first")
    source = tmp_path / "weights.safetensors"
    tensors = {n.removeprefix("network."): v for n, v in load_file(first.checkpoint_path("best")).items()}
    save_file(tensors, source)
    run = train(replace(TINY, init=str(source)), tmp_path / "run")
    whole = run.checkpoint_path("last").read_bytes()
    run.checkpoint_path("last").unlink()
    train(resume=run.folder, restart=True)
    assert run.checkpoint_path("last").read_bytes() == whole
    run.checkpoint_path("last").unlink()
    save_file({name: value + 1 for name, value in tensors.items()}, source)
    with pytest.raises(FirststepError, match="began with other weights"):
        train(resume=run.folder, restart=True)


@pytest.mark.slow
def test_the_commands(warm: WarmCommands, tmp_path: Path) -> None:
    out = tmp_path / "pretrained"
    flags = ["--filters", "4", "--image-size", "16", "--epochs", "1", "--batch", "512", "--threads", "1"]
    done = warm.run(["pretrain", *flags, "--validation-episodes", "2", "--queries", "3", "--out", out])
    assert done.returncode == 0, done.stderr
    assert "nearest class means on validation episodes" in done.stderr
    assert f"firststep train --init {out}" in done.stdout
    again = warm.run(["pretrain", *flags, "--out", out])
    assert again.returncode == 2
    assert "already holds a training" in again.stderr
    assert len(again.stderr.splitlines()) == 1
    large = warm.run(["pretrain", "--batch", "1000000", "--out", tmp_path / "x"])
    assert large.returncode == 2
    assert "--batch 1000000 is more than the" in large.stderr
    nothing = warm.run(["pretrain", "--resume", tmp_path])
    assert nothing.returncode == 2
    assert "it has no pretrain.json" in nothing.stderr
