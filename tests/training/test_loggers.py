"""Loggers: each receives the numbers of metrics.jsonl, also of a resumed run, and fails with its name."""

from __future__ import annotations

import csv
import json
import struct
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firststep import FirststepError
from firststep.training import LOGGERS, LoggedRun, Run, register_logger, train
from runs import TINY, same_run, tiny_run
from warm_cli import WarmCommands

Numbers = dict[tuple[int, str], float]
"""(update, name) → value"""


def expected(run: Run) -> Numbers:
    """Return the numbers of metrics.jsonl, named with the inner step after a slash."""
    found: Numbers = {}
    for entry in run.metrics():
        for name, value in entry.items():
            if isinstance(value, list):
                found |= {(entry["update"], f"{name}/{step}"): item for step, item in enumerate(value)}
            elif name != "update":
                found[entry["update"], name] = value
    assert len(found) > 20
    return found


def in_csv(run: Run) -> Numbers:
    with open(run.folder / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {
        (int(row["update"]), "/".join(filter(None, (row["metric"], row["step"])))): float(row["value"])
        for row in rows
    }
    assert len(found) == len(rows)
    return found


def in_tensorboard(run: Run) -> Numbers:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(run.folder / "tensorboard"))
    board.Reload()
    return {(event.step, tag): event.value for tag in board.Tags()["scalars"] for event in board.Scalars(tag)}


def in_mlflow(run: Run) -> Numbers:
    from mlflow import MlflowClient

    client, identity = MlflowClient(), (run.folder / "mlflow-run.txt").read_text().strip()
    stored = client.get_run(identity)
    assert stored.info.run_name == run.name
    assert stored.info.status == "FINISHED"
    assert stored.data.params["ways"] == "5"
    return {
        (metric.step, name): metric.value
        for name in stored.data.metrics
        for metric in client.get_metric_history(identity, name)
    }


def in_wandb(run: Run) -> Numbers:
    """Return the records of the offline files, which ``wandb sync`` uploads."""
    from wandb.proto import wandb_internal_pb2

    identity = (run.folder / "wandb-run.txt").read_text().strip()
    found: Numbers = {}
    files = sorted(run.folder.glob("wandb/offline-run-*/*.wandb"))
    assert files
    for file in files:
        assert identity in file.name
        for data in leveldb_records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            items = {
                (item.key or "/".join(item.nested_key)): json.loads(item.value_json)
                for item in record.history.item
            }
            names = [name for name in items if not name.startswith("_") and name != "update"]
            found |= {(items["update"], name): items[name] for name in names}
    return found


def leveldb_records(content: bytes, header: int = 7, block: int = 32768) -> Iterator[bytes]:
    """Parse LevelDB's log after wandb's header: crc (4 bytes), length (2), type (1: whole, 2-4: parts)."""
    place, collected = header, b""
    while place + 7 <= len(content):
        if block - place % block < 7:  # the rest of a block is padding
            place += block - place % block
            continue
        length, kind = struct.unpack_from("<HB", content, place + 4)
        collected += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield collected
            collected = b""


READERS: dict[str, Callable[[Run], Numbers]] = {
    "csv": in_csv,
    "mlflow": in_mlflow,
    "tensorboard": in_tensorboard,
    "wandb": in_wandb,
}


@pytest.fixture
def local_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for folder in ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(folder, str(tmp_path / "wandb-home"))


@pytest.mark.slow
@pytest.mark.usefixtures("local_stores")
@pytest.mark.parametrize("name", READERS)
def test_a_logger_has_the_numbers_of_the_run_also_when_resumed(name: str, tmp_path: Path) -> None:
    plain = tiny_run(tmp_path / "plain", log="none")
    with warnings.catch_warnings():
        if name in ("wandb", "mlflow"):  # of their own code
            warnings.simplefilter("ignore")
        run = tiny_run(tmp_path / "run", log=name, updates=2)
        assert READERS[name](run) == pytest.approx(expected(run))
        train(resume=run.folder, updates=4)
        run = Run(run.folder)
        assert READERS[name](run) == pytest.approx(expected(run))
    same_run(plain.folder, run.folder)
    assert {path.name for path in plain.folder.iterdir()} < {path.name for path in run.folder.iterdir()}


def test_every_registered_logger_is_tested() -> None:
    assert set(LOGGERS) == set(READERS)


def test_a_table_drops_what_a_resumed_run_logs_again(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", log="csv")
    whole = (run.folder / "metrics.csv").read_bytes()
    (run.folder / "metrics.csv").write_bytes(whole + b"5,query_loss,,1.0\n6,half a li")
    train(resume=run.folder)  # finished: nothing is trained, all that is later than the checkpoint goes
    assert (run.folder / "metrics.csv").read_bytes() == whole


@pytest.mark.usefixtures("clean_registries")
def test_a_logger_of_ones_own_is_opened_written_and_closed(tmp_path: Path) -> None:
    events: list[Any] = []

    @register_logger("list")
    class Listing:
        def __init__(self, run: LoggedRun) -> None:
            events.append((run.name, run.start, run.config["ways"]))

        def write(self, update: int, values: Mapping[str, float]) -> None:
            events.append((update, len(values)))
            if update > 2:
                raise RuntimeError("the disk\nis full")

        def close(self) -> None:
            events.append("closed")

    with pytest.raises(
        FirststepError, match=r"^the logger list failed \(RuntimeError: the disk\); train with"
    ):
        tiny_run(tmp_path / "run", log="csv,list")
    values = len(expected(run := Run(tmp_path / "run"))) // 2
    assert events == [("run", 0, 5), (2, values), (4, values), "closed"]
    del events[:]
    with pytest.raises(FirststepError, match="the logger list failed"):
        train(resume=run.folder)
    assert events[0] == ("run", 2, 5)


def test_loggers_are_chosen_by_flag_and_an_unknown_one_is_one_line(
    tmp_path: Path, warm: WarmCommands
) -> None:
    done = warm.run(["train", "glyphs", "--log", "csv,tensorbord", "--out", str(tmp_path / "run")])
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "firststep: --log csv,tensorbord: there is no logger 'tensorbord'; "
        "choose from csv, mlflow, tensorboard, wandb, none"
    ]
    assert replace(TINY, log="csv").identity() == TINY.identity() | {"log": "csv"}
