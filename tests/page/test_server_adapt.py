"""The page's predictions equal those of ``firststep adapt``; its clients do not disturb each other."""

from __future__ import annotations

import base64
import gc
import io
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from firststep.adaptation import support_gram
from firststep.cli import main
from firststep.conditioning import eigenvalues
from firststep.evaluation import ImageSupport, adapt_to_images
from firststep.page import Limits, Models, lessons
from firststep.page.models import PageModel
from firststep.training import load_trained
from served_page import ServedPage, lesson_of, png, served


def pixels(text: str) -> np.ndarray:
    with Image.open(io.BytesIO(base64.b64decode(text))) as image:
        return np.asarray(image)[:, :, None]


def support_of(lesson: dict[str, Any], run: Path) -> tuple[Any, ImageSupport, torch.Tensor]:
    trained = load_trained(run)

    def images(texts: list[str]) -> torch.Tensor:
        return torch.from_numpy(trained.preprocessing.normalise(np.stack([pixels(text) for text in texts])))

    classes = lesson["classes"]
    labels = [number for number, each in enumerate(classes) for _ in each["examples"]]
    support = ImageSupport(
        [each["name"] for each in classes],
        images([text for each in classes for text in each["examples"]]),
        torch.tensor(labels),
    )
    return trained.meta, support, images([query["image"] for query in lesson["queries"]])


@pytest.mark.parametrize("name", ["plain", "shared"])
def test_every_step_is_that_of_the_library(
    page: ServedPage, runs_folder: Path, episode: Any, name: str
) -> None:
    lesson = lesson_of(episode, name, steps=4)
    events = page.adapt(lesson)
    assert [event["type"] for event in events] == ["start", *["step"] * 5, "auto", "done"]
    meta, support, queries = support_of(lesson, runs_folder / name)
    expected = [query["label"] for query in lesson["queries"]]
    learner = meta.for_classes(3)
    for taken, event in enumerate(events[1:6]):
        assert event["step"] == taken
        adapted = adapt_to_images(meta, support, steps=taken)
        found = torch.tensor(event["probabilities"])
        torch.testing.assert_close(found, adapted.probabilities(queries), rtol=0, atol=1e-6)
        right = [int(row.argmax()) == label for row, label in zip(found, expected, strict=True)]
        assert event["accuracy"] == sum(right) / 6
        assert event["largest_share"] == max(np.bincount(found.argmax(1))) / 6
        gram = support_gram(learner.functional, support.images, support.labels, params=adapted.params)
        spectrum = torch.tensor(event["eigenvalues"], dtype=torch.float64)
        assert bool((spectrum.diff() <= 0).all())
        # Rounding of features moves each eigenvalue by a share of the largest, so κ by up to κ times that.
        exact = eigenvalues(gram).flip(-1)
        torch.testing.assert_close(spectrum, exact, rtol=0, atol=1e-6 * exact[0].item())
        shown = (spectrum[0] / spectrum[-1]).item()
        assert event["condition_number"] == pytest.approx(shown, rel=1e-6)
        assert event["largest_curvature"] == 2 * event["eigenvalues"][0]
        assert event["rate"] == 0.1
    chosen = adapt_to_images(meta, support)
    assert events[6]["steps"] == chosen.choice.steps
    assert events[6]["losses"] == pytest.approx(chosen.choice.losses, rel=1e-5)


def test_every_step_is_that_of_the_command(
    page: ServedPage,
    runs_folder: Path,
    tmp_path: Path,
    lesson: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Compare on the same files: nine examples are too few for the command to calibrate."""
    support, asked = tmp_path / "support", tmp_path / "asked"
    for number, each in enumerate(lesson["classes"]):
        (support / f"class {number}").mkdir(parents=True)
        for index, text in enumerate(each["examples"]):
            (support / f"class {number}" / f"{index}.png").write_bytes(base64.b64decode(text))
    asked.mkdir()
    for index, query in enumerate(lesson["queries"]):
        (asked / f"{index}.png").write_bytes(base64.b64decode(query["image"]))
    steps = [event for event in page.adapt(lesson) if event["type"] == "step"]
    for taken in (0, 3):
        flags = ["--support", str(support), "--query", str(asked), "--format", "json"]
        run = str(runs_folder / "plain")
        assert main(["adapt", run, *flags, "--steps", str(taken), "--out", str(tmp_path / "out")]) == 0
        answers = json.loads(capsys.readouterr().out)
        names = [f"class {number}" for number in range(3)]
        told = [[row["all"][name] for name in names] for row in answers]
        np.testing.assert_allclose(steps[taken]["probabilities"], told, rtol=0, atol=1e-6)


def test_clients_at_once_get_what_they_get_alone(page: ServedPage, episode: Any) -> None:
    lessons = []
    for number in range(6):
        changed = lesson_of(episode, ["plain", "shared"][number % 2], steps=3)
        changed["classes"] = changed["classes"][: 2 + number // 2 % 2]
        if number < 5:  # nothing to hold out: no cross-validation
            changed["classes"][0]["examples"] = changed["classes"][0]["examples"][:1]
        changed["queries"] = [{"image": query["image"]} for query in changed["queries"]]
        lessons.append(changed)

    def told(lesson: dict[str, Any]) -> list[Any]:
        return [event for event in page.adapt(lesson) if event["type"] in ("step", "auto")]

    alone = [told(lesson) for lesson in lessons]
    with ThreadPoolExecutor(12) as threads:
        together = list(threads.map(told, lessons * 4))
    assert together == alone * 4


def test_without_queries_there_is_still_a_spectrum(page: ServedPage, lesson: dict[str, Any]) -> None:
    events = page.adapt({**lesson, "queries": [], "steps": 1})
    assert [event.get("probabilities") for event in events[1:3]] == [[], []]
    assert events[1]["accuracy"] is None
    assert len(events[1]["eigenvalues"]) == 9


def test_one_example_a_class_leaves_nothing_to_hold_out(page: ServedPage, lesson: dict[str, Any]) -> None:
    classes = [{**each, "examples": each["examples"][:1]} for each in lesson["classes"]]
    auto = page.adapt({**lesson, "classes": classes})[-2]
    assert auto["type"] == "auto"
    assert auto["steps"] == 2
    assert auto["losses"] == []
    assert "one example" in auto["why"]


def test_auto_is_computed_once_for_other_queries_of_the_same_examples(
    models: Models, runs_folder: Path, lesson: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[Any] = []
    real = lessons.auto_event

    def counted(*arguments: Any) -> Any:
        computed.append(real(*arguments))
        return computed[-1]

    monkeypatch.setattr(lessons, "auto_event", counted)
    other = [dict(each) for each in lesson["classes"]]
    other[0]["examples"] = other[0]["examples"][:2]
    with served(models, runs_folder) as page:
        first = page.adapt({**lesson, "steps": 1})
        again = page.adapt({**lesson, "queries": lesson["queries"][:1], "steps": 1})
        assert again[-2] == first[-2] == computed[0]
        assert len(computed) == 1
        assert page.adapt({**lesson, "classes": other, "steps": 1})[-2] == computed[1]
        assert page.adapt({**lesson, "model": "shared", "steps": 1})[-2] == computed[2]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": "none"}, "unknown model 'none'"),
    ({"model": "missing"}, "missing could not be loaded: missing is not a folder"),
    ({"steps": 11}, "steps must be 0..10, not 11"),
    ({"steps": 1.5}, "steps: expected int"),
    ({"classes": []}, "plain takes 2 to 5 classes, not 0"),
    ({"classes": [{"name": "a", "examples": []}] * 2}, "class 1 has no example"),
    ({"classes": [{"name": " ", "examples": ["x"]}] * 2}, "class 1 needs a name"),
    (
        {"queries": [], "classes": [{"name": "a", "examples": ["x!"]}] * 2},
        "example 1 of class 1 is not base64",
    ),
    (
        {"queries": [], "classes": [{"name": "a", "examples": ["aGFsbG8="]}] * 2},
        "example 1 of class 1 is not an image",
    ),
    ({"classes": [{"name": "a", "examples": ["eA=="] * 101}] * 2}, "202 examples are too many"),
    ({"classes": [{"name": "a", "examples": ["eA=="]}] * 6}, "plain takes 2 to 5 classes, not 6"),
    ({"classes": "abc"}, "classes: expected array"),
    ({"queries": [{"image": "", "label": 3}]}, "labels of queries must be 0..2 or null"),
    ({"queries": [{"image": ""}] * 101}, "101 queries are too many"),
]


@pytest.mark.parametrize(("change", "words"), WRONG, ids=[words for _, words in WRONG])
def test_what_does_not_fit_is_refused_in_a_line(
    page: ServedPage, lesson: dict[str, Any], change: dict[str, Any], words: str
) -> None:
    answer = page.ask("/api/adapt", {**lesson, **change})
    assert answer.status == 422
    assert words in answer.error


def test_what_is_no_json_is_refused(page: ServedPage) -> None:
    for body in (b"{", b"[" * 100_000, b"\xff\xfe", b""):
        assert page.ask("/api/adapt", body).status == 400
    assert page.ask("/api/adapt", b"[]").status == 422
    assert page.ask("/api/adapt", {}, headers={"Content-Type": "text/plain"}).status == 415


def test_a_picture_of_another_size_or_mode_is_refused(page: ServedPage, lesson: dict[str, Any]) -> None:
    for array in (np.zeros((17, 16), np.uint8), np.zeros((16, 16, 3), np.uint8), np.zeros((8, 8), np.uint8)):
        classes = [{"name": "a", "examples": [base64.b64encode(png(array)).decode()]}] * 2
        answer = page.ask("/api/adapt", {**lesson, "classes": classes, "queries": []})
        assert answer.status == 422
        assert "example 1 of class 1 is" in answer.error


def test_a_model_that_diverges_leaves_the_page_usable(
    models: Models, runs_folder: Path, lesson: dict[str, Any]
) -> None:
    broken = load_trained(runs_folder / "plain")
    with torch.no_grad():
        for value in broken.meta.network.parameters():
            value.mul_(1e30)
    mixed = Models({**models.ready, "broken": PageModel("broken", broken)}, {}, ("broken", "plain"))
    with served(mixed, runs_folder) as page:
        events = page.adapt({**lesson, "model": "broken"})
        assert events[-1]["type"] == "error"
        assert "not finite" in events[-1]["message"]
        assert page.adapt(lesson)[-1]["type"] == "done"


def test_those_who_wait_are_told_and_too_many_are_refused(
    models: Models, runs_folder: Path, lesson: dict[str, Any]
) -> None:
    with served(models, runs_folder, limits=Limits(at_once=1, waiting=2)) as page:
        few = [{**each, "examples": each["examples"][:1]} for each in lesson["classes"]]
        slow = {**lesson, "classes": few, "queries": lesson["queries"] * 16, "steps": 10}
        with ThreadPoolExecutor(6) as threads:
            answers = list(threads.map(lambda _: page.ask("/api/adapt", slow), range(6)))
        refused = [answer for answer in answers if answer.status == 503]
        served_ = [answer for answer in answers if answer.status == 200]
        assert refused
        assert len(refused) + len(served_) == 6
        assert all("wait already" in answer.error for answer in refused)
        ahead = [
            event["ahead"]
            for answer in served_
            for event in map(json.loads, answer.body.splitlines())
            if event["type"] == "waiting"
        ]
        assert {0, 1} <= set(ahead) <= {0, 1, 2}
        assert all(json.loads(answer.body.splitlines()[-1])["type"] == "done" for answer in served_)


def test_a_client_that_goes_away_stops_its_work(
    models: Models, runs_folder: Path, lesson: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One at a time: the next begins as soon as the step of the one that is gone has ended."""
    steps: list[str] = []
    reached = threading.Event()
    real = lessons.step_events

    def counted(meta: Any, *arguments: Any, **keywords: Any) -> Any:
        for event in real(meta, *arguments, **keywords):
            steps.append(threading.current_thread().name)
            reached.set()
            time.sleep(0.2)
            yield event

    monkeypatch.setattr(lessons, "step_events", counted)
    with served(models, runs_folder, limits=Limits(at_once=1)) as page:
        body = json.dumps({**lesson, "steps": 10}).encode()
        head = f"POST /api/adapt HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        request = head.encode() + body
        with socket.create_connection(("127.0.0.1", page.port), timeout=240) as connection:
            connection.sendall(request)
            assert reached.wait(240)
        monkeypatch.setattr(lessons, "step_events", real)
        assert page.adapt({**lesson, "steps": 1})[-1]["type"] == "done"
        assert 1 <= len(steps) < 11
        # Those who only wait leave the line.
        connections = [socket.create_connection(("127.0.0.1", page.port), timeout=240) for _ in range(4)]
        for connection in connections:
            connection.sendall(request)
        for connection in connections:
            connection.close()
        assert page.adapt({**lesson, "steps": 1})[-1]["type"] == "done"


def test_nothing_is_left_of_a_request(page: ServedPage, lesson: dict[str, Any]) -> None:
    def alive() -> tuple[int, int]:
        gc.collect()
        kinds = [type(each) for each in gc.get_objects()]
        return sum(issubclass(kind, torch.nn.Module) for kind in kinds), sum(
            issubclass(kind, torch.Tensor) for kind in kinds
        )

    for model in ("plain", "shared") * 2:
        page.adapt({**lesson, "model": model})
    before = alive()
    for number in range(6):
        page.adapt({**lesson, "model": ("plain", "shared")[number % 2]})
    assert alive() == before
