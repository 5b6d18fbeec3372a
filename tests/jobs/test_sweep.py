"""``firststep train --sweep`` through the real command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from firststep.cli import main
from firststep.training import open_run
from firststep.training.checkpoint import saved_update
from firststep.utils import available_cores
from runs import TINY_FLAGS


def test_the_product_is_trained_shown_and_then_skipped_and_failures_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", *TINY_FLAGS, "--seed", "3", "--out", str(tmp_path)]
    command += ["--sweep", "method=maml,meta-sgd", "image-size=16,15"]
    assert main(command) == 2
    shown = capsys.readouterr()
    rows = {line.split("│")[1].strip(): line for line in shown.out.splitlines() if "image-size-" in line}
    assert len(rows) == 4
    for name, row in rows.items():
        if name.endswith("-15"):
            assert "failed" in row
            continue
        run = open_run(tmp_path / name)
        assert (run.config.seed, run.config.updates) == (3, 4)
        assert run.config.method in name
        best = max(entry["validation_accuracy"][-1] for entry in run.metrics())
        assert f"{100 * best:.1f} ±" in row
    assert "2 of 4 runs failed: method-maml_image-size-15: image_size must be at least 16" in shown.err
    assert "4/4" in shown.err
    assert main(command) == 2
    again = capsys.readouterr()
    assert again.err.count("skipped") == 2
    assert again.out == shown.out


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        (["methud=maml"], "unknown field of a sweep 'methud'; did you mean method?"),
        (["method=mamml"], "unknown method 'mamml'; did you mean maml?"),
        (["seed=0,one"], "--sweep seed=one: seed is an integer"),
        (["rate=0.1,x"], "--sweep rate=x: rate is a number"),
        (["augment=maybe"], "--sweep augment=maybe: augment is true or false"),
        (["seed"], "--sweep seed: write it as seed=value,value"),
        (["seed=0", "seed=1"], "--sweep has seed twice"),
        (["seed=1,1"], "--sweep seed=1,1 has a value twice"),
        (["shots=0,1"], "--shots must be at least 1"),
        (["seed=0", "--address", "here:1"], "--address goes with --executor ray"),
        (["seed=0", "--executor", "ray", "--at-once", "2"], "--at-once is for --executor local"),
        (["seed=0", "--executor", "inline", "--at-once", "2"], "--at-once is for --executor local"),
        (["seed=0", "--at-once", "0"], "--at-once must be at least 1"),
    ],
)
def test_what_cannot_be_swept_is_named(
    sweep: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--out", str(tmp_path / "runs"), "--sweep", *sweep]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_ctrl_c_saves_every_run_and_says_how_to_resume(tmp_path: Path) -> None:
    """Like a terminal, send the signal to all processes of the group."""
    flags = [*TINY_FLAGS, "--updates", "100000", "--validate-every", "100000", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "firststep", "train", *flags, "--sweep", "seed=0,1", "--at-once", "2"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    training = 0
    while training < min(2, available_cores()):
        training += "training" in process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "stopped with 0 of 2 runs finished; the others are saved: the same command resumes them" in errors
    assert "Traceback" not in errors
    for seed in range(training):
        # No validation was due: this checkpoint was made when the signal came.
        assert saved_update(tmp_path / f"seed-{seed}" / "checkpoints" / "last.safetensors") > 0
