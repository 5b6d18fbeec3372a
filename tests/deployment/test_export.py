"""Exported classifiers: the same probabilities from every format, and one line for what is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from firststep.data import Preprocessing
from firststep.deployment import (
    DeployedModel,
    ImageClassifier,
    ModelCard,
    export_model,
    load_deployed,
    make_deployable,
    save_adapted,
)
from firststep.errors import FirststepError
from firststep.evaluation import AdaptedModel, ImageSupport, adapt_to_images
from firststep.training import load_trained
from runs import tiny_run
from second_device import SECOND, synchronisations

Deployable = tuple[AdaptedModel, ImageClassifier, ModelCard, np.ndarray]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run(tmp_path_factory.mktemp("run") / "run", updates=1, validate_every=1, head="zero").folder


def deployable(run: Path, classifier: str, classes: int = 3) -> Deployable:
    trained = load_trained(run)
    size, rng = trained.preprocessing.image_size, np.random.default_rng(0)
    # Drawings on black and on white paper: the second are inverted, by the file reader and by the model.
    pixels = rng.integers(0, 90, (classes * 8, size, size, 1), dtype=np.uint8)
    labels = np.arange(classes).repeat(8)
    for number, image in enumerate(pixels):
        image[4 : 8 + labels[number] * 2, 4:12] += 100
    images = torch.from_numpy(trained.preprocessing.normalise(pixels))
    support = ImageSupport([f"c{i}" for i in range(classes)], images, torch.from_numpy(labels))
    adapted = adapt_to_images(trained.meta, support, classifier=classifier, validate=True)  # type: ignore[arg-type]
    about = trained.describe()
    module, card = make_deployable(adapted, trained.preprocessing, run=about["run"], config=about["config"])
    return adapted, module, card, pixels


@pytest.fixture(scope="module")
def made(run: Path) -> Deployable:
    return deployable(run, "steps")


def same_answers(model: DeployedModel, adapted: AdaptedModel, pixels: np.ndarray) -> None:
    expected = adapted.probabilities(adapted.support.images).numpy()
    np.testing.assert_allclose(model.probabilities(pixels), expected, atol=1e-5)
    np.testing.assert_allclose(model.batch(pixels), expected, atol=1e-5)
    np.testing.assert_allclose(model.probabilities(pixels[2:3]), expected[2:3], atol=1e-5)
    np.testing.assert_allclose(model.probabilities(255 - pixels), expected, atol=1e-5)  # light paper


@pytest.mark.parametrize("ending", ["onnx", "pt2", "safetensors"])
def test_every_format_gives_what_adapt_gave(ending: str, made: Deployable, tmp_path: Path) -> None:
    adapted, module, card, pixels = made
    path = tmp_path / f"model.{ending}"
    export_model(path, module, card, pixels[:3])
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    model = load_deployed(path)
    assert adapted.temperature is not None
    assert model.card == card
    same_answers(model, adapted, pixels)


@pytest.mark.parametrize("classifier", ["nearest-means", "ridge", "logistic"])
@pytest.mark.parametrize("classes", [2, 4])
def test_probes_are_deployed_too(classifier: str, classes: int, run: Path, tmp_path: Path) -> None:
    adapted, module, card, pixels = deployable(run, classifier, classes)
    save_adapted(tmp_path / "adapted", module, card)
    same_answers(load_deployed(tmp_path / "adapted"), adapted, pixels)


def test_programs_run_on_other_devices(made: Deployable, tmp_path: Path) -> None:
    adapted, module, card, pixels = made
    for ending in ("pt2", "onnx"):
        export_model(tmp_path / f"model.{ending}", module, card, pixels[:2])
    with synchronisations() as seen:
        model = load_deployed(tmp_path / "model.pt2", device=str(SECOND))
        found = model.batch(pixels)
    assert "copy to the CPU" in seen  # it was computed there
    np.testing.assert_allclose(found, adapted.probabilities(adapted.support.images).numpy(), atol=1e-5)
    np.testing.assert_array_equal(
        load_deployed(tmp_path / "model.onnx", device="auto").batch(pixels),
        load_deployed(tmp_path / "model.onnx", device="cpu").batch(pixels),
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize(
    ("name", "device", "says"),
    [
        ("model.onnx", "cuda", "device cuda: this ONNX Runtime has no CUDAExecutionProvider; pip install"),
        ("model.onnx", "cuda:x", "cuda:x is not a device for .onnx files"),
        ("model.onnx", "mps", "mps is not a device for .onnx files; they run on cpu, cuda or auto"),
        ("model.pt2", "cuda", "device cuda: PyTorch sees none here"),
    ],
)
def test_a_missing_device_is_one_line(
    name: str, device: str, says: str, made: Deployable, tmp_path: Path
) -> None:
    _, module, card, pixels = made
    export_model(tmp_path / name, module, card, pixels[:2])
    with pytest.raises(FirststepError, match=says):
        load_deployed(tmp_path / name, device=device)


def test_other_programs_read_them(made: Deployable, tmp_path: Path) -> None:
    import onnxruntime

    adapted, module, card, pixels = made
    for ending in ("onnx", "pt2"):
        export_model(tmp_path / f"model.{ending}", module, card, pixels[:2])
    expected = adapted.probabilities(adapted.support.images).numpy()
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(["probabilities"], {"images": pixels})
    np.testing.assert_allclose(found, expected, atol=1e-5)
    program = torch.export.load(tmp_path / "model.pt2").module()
    np.testing.assert_allclose(program(torch.from_numpy(pixels)).numpy(), expected, atol=1e-5)


def test_photographs_are_normalised_inside() -> None:
    class Flat(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images.flatten(1)

    preprocessing = Preprocessing(image_size=4)
    pixels = np.random.default_rng(0).integers(0, 255, (2, 4, 4, 3), dtype=np.uint8)
    found = ImageClassifier(Flat(), preprocessing, 2.0)(torch.from_numpy(pixels))
    expected = torch.from_numpy(preprocessing.normalise(pixels)).flatten(1) / 2
    torch.testing.assert_close(found, expected.softmax(1), rtol=1e-5, atol=1e-8)


def test_a_file_that_answers_otherwise_is_not_kept(made: Deployable, tmp_path: Path) -> None:
    _, module, card, pixels = made
    (tmp_path / "model.safetensors").write_text("before")
    wrong = ImageClassifier(module.network, card.preprocessing, (card.temperature or 1.0) * 3)
    with pytest.raises(FirststepError, match=r"model.safetensors was not kept: read back, it gives prob"):
        export_model(tmp_path / "model.safetensors", wrong, card, pixels[:2])
    assert (tmp_path / "model.safetensors").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_missing_package_is_one_line(
    made: Deployable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, module, card, pixels = made
    for package in ("onnx", "onnxscript", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(FirststepError, match=rf"needs {package}: pip install 'firststep\[onnx\]'"):
            export_model(tmp_path / "model.onnx", module, card, pixels[:2])
        monkeypatch.undo()
    assert not list(tmp_path.iterdir())


def test_damaged_files_are_one_line(made: Deployable, tmp_path: Path) -> None:
    _, module, card, _ = made
    whole = save_adapted(tmp_path / "adapted", module, card)
    content = whole.read_bytes()
    for ending in ("safetensors", "pt2", "onnx"):
        for name, damaged in (("half", content[:300]), ("empty", b""), ("text", b"{}" * 50)):
            path = tmp_path / f"{name}.{ending}"
            path.write_bytes(damaged)
            with pytest.raises(FirststepError, match=rf"{name}.{ending} .*(damaged|is not)") as error:
                load_deployed(path)
            assert "\n" not in str(error.value)
    weights = load_file(whole)
    save_file(weights, tmp_path / "nameless.safetensors")
    with pytest.raises(FirststepError, match="does not say its classes"):
        load_deployed(tmp_path / "nameless.safetensors")
    del weights["classifier.weight"]
    save_file(weights, tmp_path / "part.safetensors", metadata={"firststep": card.text()})
    with pytest.raises(FirststepError, match=r"classifier\.weight is missing"):
        load_deployed(tmp_path / "part.safetensors")
    save_file(weights, tmp_path / "odd.safetensors", metadata={"firststep": card.text()[:-30]})
    with pytest.raises(FirststepError, match="is not valid JSON"):
        load_deployed(tmp_path / "odd.safetensors")
    for path, says in (
        (tmp_path, "is not a folder of `firststep adapt`"),
        (tmp_path / "x.txt", "is not a model"),
    ):
        with pytest.raises(FirststepError, match=says):
            load_deployed(path)
