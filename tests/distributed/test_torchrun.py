"""Real launches: the same run on one, two and four processes, kills, signals, refusals.

Checkpoints and metrics are compared bit by bit: the tolerance is zero, because sums are taken in the order of
the tasks and every process computes with the same number of threads.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import torch

from firststep.cli import main
from firststep.training import open_run, train
from launches import ended, finished, torchrun
from runs import TINY_FLAGS, tiny_run

PROGRAM = Path(__file__).parents[1] / "helpers" / "torchrun_commands.py"
Captured = pytest.CaptureFixture[str]

PLAIN = ["--conditioning", "none", "--meta-batch", "4", "--steps", "1", "--updates", "6"]
PLAIN += ["--validate-every", "3"]
LEARNERS = {
    "maml": PLAIN,
    "meta-sgd": [*PLAIN, "--method", "meta-sgd"],
    # Five tasks divide neither by two nor by four.
    "conditioned": ["--meta-batch", "5", "--all-every", "1"],
}
TWENTY = [*TINY_FLAGS, "--updates", "20", "--validate-every", "10"]
FILES = ("checkpoints/last.safetensors", "checkpoints/best.safetensors", "metrics.jsonl", "run.json")


def same_run(first: Path, second: Path) -> None:
    for name in FILES:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def commands(where: Path) -> list[list[str]]:
    """Return the commands that train every model and test the last one."""
    trainings = [["train", *TWENTY, *flags, "--out", str(where / name)] for name, flags in LEARNERS.items()]
    test = ["evaluate", str(where / "conditioned"), "--steps", "0", "2", "--auto", "--episodes", "5"]
    return [*trainings, test]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("alone")
    for arguments in commands(where):
        assert main(arguments) == 0
    return where


@pytest.mark.slow
def test_four_processes_end_with_the_same_bits(alone: Path, tmp_path: Path) -> None:
    """Two do as well: the tests below end with these bits after a kill and after a signal."""
    program = str(PROGRAM), str(tmp_path / "not-finite"), json.dumps(commands(tmp_path))
    out, _ = finished(torchrun(4, *program))
    assert out.count("trained: ") == len(LEARNERS)  # one process talks
    for name in LEARNERS:
        same_run(alone / name, tmp_path / name)
    for ending in ("json", "csv"):
        file = f"conditioned/evaluations/glyphs-test-5way-2shot-5episodes.{ending}"
        assert (alone / file).read_bytes() == (tmp_path / file).read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the ranks in /proc")
def test_a_killed_rank_is_restarted_from_the_last_checkpoint(alone: Path, tmp_path: Path) -> None:
    """SIGKILL to rank 1 in the middle; torchrun starts all ranks again with the same command."""
    flags = [*TWENTY, *LEARNERS["conditioned"]]
    out = tmp_path / "conditioned"
    process = torchrun(
        2, "-m", "firststep", "train", *flags, "--out", str(out), options=["--max-restarts", "1"]
    )
    last = out / "checkpoints" / "last.safetensors"
    while not last.exists() and process.poll() is None:
        time.sleep(0.02)
    os.kill(rank_of(process.pid, 1), signal.SIGKILL)
    _, errors = finished(process)
    assert "SIGKILL" in errors or "-9" in errors
    same_run(alone / "conditioned", out)


@pytest.mark.slow
def test_a_signal_stops_all_ranks_at_one_update_and_one_process_goes_on(alone: Path, tmp_path: Path) -> None:
    flags = [*TWENTY, *LEARNERS["conditioned"]]
    out = tmp_path / "conditioned"
    process = torchrun(2, "-m", "firststep", "train", *flags, "--out", str(out))
    while not (out / "metrics.jsonl").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, errors = ended(process)
    assert process.returncode != 0
    assert errors.count("and saved; resume with") == 1
    assert 0 < open_run(out).load("last", torch.device("cpu")).update < 20
    train(resume=out)
    same_run(alone / "conditioned", out)


@pytest.mark.slow
def test_what_cannot_be_trained_ends_all_ranks_with_one_line(tmp_path: Path) -> None:
    flags = [*TINY_FLAGS, "--meta-batch", "1"]
    process = torchrun(2, "-m", "firststep", "train", *flags, "--out", str(tmp_path / "run"))
    _, errors = ended(process)
    assert process.returncode != 0
    assert errors.count("2 processes share 1 tasks a meta-batch") == 1
    assert "exitcode  : 2" in errors
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_there_goes_on_only_when_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """torchrun repeats the same command like this; here in one process."""
    run = tiny_run(tmp_path / "run")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    again = ["train", *TINY_FLAGS, "--out", str(run.folder)]
    assert main(again) == 0
    assert main([*again, "--seed", "1"]) == 2
    assert "already holds a run" in capsys.readouterr().err
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    assert main(again) == 2


def test_other_commands_are_not_for_torchrun(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["parameters"]) == 2
    assert "firststep parameters runs in one process" in capsys.readouterr().err


def rank_of(torchrun_process: int, rank: int) -> int:
    """Return the process id of a rank among torchrun's children."""
    for child in Path(f"/proc/{torchrun_process}/task/{torchrun_process}/children").read_text().split():
        if f"\0RANK={rank}\0".encode() in b"\0" + Path(f"/proc/{child}/environ").read_bytes():
            return int(child)
    raise AssertionError(f"torchrun has no rank {rank}")
