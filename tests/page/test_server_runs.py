"""Runs are watched while they are written: live, cut off in the middle of a line, or damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from firststep.page import Models, load_models
from firststep.training import Run, TrainConfig, open_since, train
from firststep.utils import is_locked, try_lock
from runs import TINY, tiny_run
from served_page import ServedPage, served

SHORT: dict[str, Any] = {"validate_every": 2, "validation_episodes": 2, "threads": 1, "steps": 2}


@pytest.fixture
def watched(models: Models, tmp_path: Path) -> Any:
    with served(models, tmp_path / "runs") as page:
        yield page


def listed(page: ServedPage) -> dict[str, dict[str, Any]]:
    answer = page.ask("/api/runs")
    assert answer.status == 200, answer.body
    return {run["id"]: run for run in answer.json()["runs"]}


def test_finished_runs(page: ServedPage, runs_folder: Path) -> None:
    assert page.ask("/api/runs").json()["folder_name"] == "runs"
    run = listed(page)["shared"]
    assert (run["state"], run["updates"], run["of"], run["error"]) == ("finished", 4, 4, None)
    assert run["seconds_left"] is None
    assert run["summary"]["label"] == "maml, shared head + conditioning"
    curves = page.ask("/api/runs/shared").json()
    entries = Run(runs_folder / "shared").metrics()
    assert curves["updates"] == [2, 4]
    assert run["metric"] == {"title": "accuracy", "percent": True}
    assert curves["main"] == [entry["validation_accuracy"] for entry in entries]
    assert curves["condition_number"] == [entry["validation_condition_number"] for entry in entries]
    assert [len(row) for row in curves["main"]] == [3, 3]
    assert run["latest"] == curves["main"][-1]
    assert page.ask("/api/runs/none").status == 422


def test_a_run_of_regression_shows_its_own_metric(watched: ServedPage, tmp_path: Path) -> None:
    config = TrainConfig(tasks="sinusoid", loss="squared_error", backbone="mlp", shots=5, updates=2, **SHORT)
    train(config, tmp_path / "runs" / "waves")
    run = listed(watched)["waves"]
    assert run["metric"] == {"title": "mean squared error", "percent": False}
    assert (run["summary"]["data"], run["summary"]["task"]) == ("sinusoid", "5-shot")
    entry = Run(tmp_path / "runs" / "waves").metrics()[-1]
    assert run["latest"] == entry["validation_mean_squared_error"]
    assert watched.ask("/api/runs/waves").json()["main"][-1] == run["latest"]
    refused = load_models([str(tmp_path / "runs" / "waves")]).failed["waves"]
    assert refused == "waves was trained on tasks of sinusoid, not on images"


def test_there_need_be_no_folder(watched: ServedPage) -> None:
    assert watched.ask("/api/runs").json() == {"folder_name": "runs", "runs": []}


def test_a_run_while_it_trains(watched: ServedPage, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "sweep" / "one"
    seen: list[dict[str, Any]] = []

    def look(_: Any) -> None:
        (found,) = listed(watched).values()
        seen.append(found)

    train(TINY, folder, on_update=look)
    assert [run["id"] for run in seen] == ["sweep/one"] * 4
    assert {run["state"] for run in seen[:3]} == {"training"}
    assert [run["updates"] for run in seen] == [0, 2, 2, 4]
    assert seen[0]["latest"] == []
    assert 0 < seen[2]["seconds_left"] < 600
    assert listed(watched)["sweep/one"]["state"] == "finished"
    assert watched.ask("/api/runs/sweep/one").json()["updates"] == [2, 4]


def test_a_run_that_was_killed_in_the_middle_of_a_line(watched: ServedPage, tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "runs" / "cut", updates=2)
    whole = run.metrics_path.read_text()
    run.metrics_path.write_text(whole + whole[: len(whole) // 2])
    record = json.loads(run.record_path.read_text())
    record["config"]["updates"] = 400
    run.record_path.write_text(json.dumps(record))
    found = listed(watched)["cut"]
    assert (found["state"], found["updates"], found["of"]) == ("stopped", 2, 400)
    assert watched.ask("/api/runs/cut").json()["updates"] == [2]
    (run.folder / "checkpoints" / "last.safetensors").write_bytes(b"half")
    assert listed(watched)["cut"]["updates"] == 2  # from the log


def test_numbers_that_json_does_not_have(watched: ServedPage, tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "runs" / "odd", updates=2)
    entry = json.loads(run.metrics_path.read_text())
    entry["validation_condition_number"][0] = float("nan")
    run.metrics_path.write_text(json.dumps(entry) + "\n")
    assert watched.ask("/api/runs/odd").json()["condition_number"][0][0] is None
    assert watched.ask("/api/runs/odd").json()["condition_number"][0][0] is None


def test_a_damaged_run_does_not_hide_the_others(watched: ServedPage, tmp_path: Path) -> None:
    tiny_run(tmp_path / "runs" / "good", updates=2)
    for name, content in (("broken", "{"), ("other", '{"format": "firststep-run-99"}'), ("list", "[]")):
        (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / name / "run.json").write_text(content)
    (tmp_path / "runs" / "a file").write_text("")
    found = listed(watched)
    assert {name: run["state"] for name, run in found.items()} == {
        "good": "finished",
        "broken": "damaged",
        "other": "damaged",
        "list": "damaged",
    }
    for run in found.values():
        assert str(tmp_path) not in json.dumps(run)
    assert "run.json is not valid JSON" in found["broken"]["error"]
    assert watched.ask("/api/runs/broken").status == 422


def test_a_name_that_is_no_text(watched: ServedPage, tmp_path: Path) -> None:
    tiny_run(tmp_path / "runs" / "good", updates=2).folder.rename(tmp_path / "runs" / "na\udcff me")
    assert list(listed(watched)) == ["na\ufffd me"]
    assert watched.ask("/api/runs/na%EF%BF%BD%20me").json()["updates"] == [2]


def test_whether_a_lock_is_held_is_told_without_taking_it(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    assert is_locked(path) is False
    lock = try_lock(path)
    assert lock is not None
    with lock:
        if is_locked(path) is None:
            pytest.skip("this system has no list of locks")
        assert is_locked(path) is True
    assert is_locked(path) is False
    with try_lock(path) or pytest.fail("it was not taken"):
        pass


def test_since_when_a_session_is_open(tmp_path: Path) -> None:
    assert open_since(tmp_path) is None
    (tmp_path / "sessions.json").write_text('[{"machine": "m", "seconds": 3.0}, {"machine": "m"}]')
    os.utime(tmp_path / "sessions.json", (1000, 1000))
    assert open_since(tmp_path) == 1000
    (tmp_path / "sessions.json").write_text('[{"machine": "m", "seconds": 3.0}]')
    assert open_since(tmp_path) is None
