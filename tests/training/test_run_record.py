"""Damaged and foreign files of a run are refused with one line; records of format 1 load."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from firststep.errors import FirststepError
from firststep.training import Run, load_checkpoint, load_trained, open_run, saved_update, train
from runs import TINY, tiny_run

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return tiny_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def run(trained: Run, tmp_path: Path) -> Run:
    """Return a copy that a test may damage."""
    for path in sorted(trained.folder.rglob("*")):
        copy = tmp_path / path.relative_to(trained.folder)
        copy.mkdir() if path.is_dir() else copy.write_bytes(path.read_bytes())
    return open_run(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["config"].update(steps=2.5), "config.steps: expected int, got float"),
        (lambda record: record["config"].update(shots=0), "`?shots`? must be at least 1, not 0"),
        (lambda record: record["config"].update(data_path=[]), "config.data_path: expected"),
        (lambda record: record["config"].update(speed=3), "this version has no speed in a configuration"),
        (lambda record: record.pop("config"), "config is missing"),
        (lambda record: record.update(config=None), "config: expected object, got null"),
        (lambda record: record.update(config=[1]), "config: expected object, got array"),
        (lambda record: record.pop("preprocessing"), "preprocessing is missing"),
        (lambda record: record.update(preprocessing=None), "preprocessing: expected object, got null"),
        (lambda record: record["preprocessing"].update(image_size=10**9), "image size 1000000000 is not"),
        (lambda record: record.update(data_fingerprint=7), "data_fingerprint: expected str, got int"),
        (lambda record: record.update(format="firststep-run-9"), "which this version of firststep does not"),
        (lambda record: record.update(format="firststep-evaluation-2"), "is another kind of file"),
    ],
)
def test_a_wrong_record_names_the_field(run: Run, change: Change, message: str) -> None:
    record = json.loads(run.record_path.read_text())
    change(record)
    run.record_path.write_text(json.dumps(record))
    with pytest.raises(FirststepError, match=message) as caught:
        load_trained(run.folder)
    assert str(run.record_path) in str(caught.value)


def test_a_record_of_the_format_before_loads(run: Run) -> None:
    record = json.loads(run.record_path.read_text())
    assert record.pop("format") == "firststep-run-2"
    run.record_path.write_text(json.dumps(record))
    assert load_trained(run.folder, which="last").update == 4
    again = train(resume=run.folder, updates=5)
    assert json.loads(again.record_path.read_text())["format"] == "firststep-run-2"
    assert open_run(again.folder).config.updates == 5


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"update": "\xff"}', "line 3 is not valid JSON"),
        (b"[1, 2]", "line 3: expected object, got array"),
        (b'{"update": 2.5}', "line 3: query_loss is missing|line 3: update: expected int, got 2.5"),
        (b'{"update": 6}', "line 3: query_loss is missing"),
        (b'{"update": 6, "query_loss": "low"}', "line 3: .*expected"),
        (b'{"update": 6, "query_loss": 0.1, "validation_accuracy": []}', "line 3: validation_"),
    ],
)
def test_a_wrong_line_of_the_metrics_is_named(run: Run, line: bytes, message: str) -> None:
    with open(run.metrics_path, "ab") as file:
        file.write(line + b"\n")
    with pytest.raises(FirststepError, match=message):
        run.metrics()
    assert len(run.metrics(tolerant=True)) == 2


def test_metrics_that_are_a_pipe_are_not_waited_for(run: Run) -> None:
    run.metrics_path.unlink()
    os.mkfifo(run.metrics_path)
    with pytest.raises(FirststepError, match="not a regular file"):
        run.metrics()


def rewrite(path: Path, change: Change, halves: bool = False) -> None:
    """Rewrite the checkpoint with another header, or with numbers in half precision."""
    with safe_open(path, "pt") as file:
        ((name, text),) = file.metadata().items()
    state = json.loads(text)
    change(state)
    tensors = load_file(path)
    if halves:
        tensors = {
            key: value.half() if value.is_floating_point() else value for key, value in tensors.items()
        }
    save_file(tensors, path, {name: json.dumps(state)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.update(update="4"), "header: update: expected int, got str"),
        (lambda state: state.update(update=-4), "header: update is -4"),
        (lambda state: state.pop("best"), "header: best is missing"),
        (lambda state: state.update(best={"accuracy": "high", "update": 2}), "header: best.accuracy"),
        (lambda state: state.update(digest="0" * 64), "do not match their digest"),
        (lambda state: state.update(update=3), "do not match their digest"),
    ],
)
def test_a_wrong_header_of_a_checkpoint_is_named(run: Run, change: Change, message: str) -> None:
    path = run.checkpoint_path("last")
    rewrite(path, change)
    with pytest.raises(FirststepError, match=message) as caught:
        load_checkpoint(path, torch.device("cpu"))
    assert str(path) in str(caught.value)


def test_numbers_of_half_precision_do_not_fit(run: Run) -> None:
    for which in ("best", "last"):
        rewrite(run.checkpoint_path(which), lambda state: state.pop("digest"), halves=True)
    with pytest.raises(FirststepError, match=r"has type torch.float16, not torch.float32"):
        load_trained(run.folder)
    with pytest.raises(FirststepError, match=r"has type torch.float16, not torch.float32"):
        train(resume=run.folder, updates=6)


@pytest.mark.parametrize("kind", ["exp_avg", "step"])
def test_moments_that_do_not_fit_are_refused(run: Run, kind: str) -> None:
    path = run.checkpoint_path("last")
    tensors = load_file(path)
    name = next(name for name in tensors if name.startswith(f"optimiser/{kind}/"))
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    ((key, text),) = metadata.items()
    state = {k: v for k, v in json.loads(text).items() if k != "digest"}
    save_file({**tensors, name: torch.zeros(3)}, path, {key: json.dumps(state)})
    with pytest.raises(FirststepError, match=f"optimiser's {kind}"):
        train(resume=run.folder, updates=6)


@pytest.mark.parametrize("other", ["firststep-1", "firststep-3"])
def test_a_checkpoint_of_another_format_is_said_to_be_one(run: Run, other: str) -> None:
    path = run.checkpoint_path("last")
    save_file(load_file(path), path, {other: "{}"})
    for read in (saved_update, lambda path: load_checkpoint(path, torch.device("cpu"))):
        with pytest.raises(FirststepError, match=f"has the format {other}, which this version"):
            read(path)


def test_leftovers_of_a_killed_training_are_removed_by_the_next(run: Run) -> None:
    left = [run.folder / ".run.json.abcd1234.tmp", run.folder / "checkpoints" / ".last.safetensors.x_1.tmp"]
    for path in left:
        path.write_bytes(b"half")
    train(resume=run.folder, updates=TINY.total_updates + 1)
    assert not any(path.exists() for path in left)
