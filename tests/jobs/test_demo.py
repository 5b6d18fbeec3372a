"""``firststep demo`` trains in worker processes, which end with it and save."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from firststep.cli.demo_run import LAST_FILE, MODELS, is_cut_demo
from firststep.jobs import Capacity
from firststep.training import recipe, train
from firststep.training.checkpoint import saved_update
from living import all_gone, workers_of

# The demo with a network and images that train in moments; its processes are the real ones.
SMALL_DEMO = """
from dataclasses import replace
from firststep.training import RECIPES, recipe

config = replace(recipe("demo"), filters=4, image_size=16, shots=2, queries=3, steps=2)
RECIPES["demo"] = lambda: config
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.slow
@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGINT])
def test_the_workers_save_and_end_with_the_demo(death: signal.Signals, tmp_path: Path) -> None:
    """SIGKILL to the demo alone; SIGINT as a terminal sends it, to all processes of the group."""
    out = tmp_path / "demo"
    (tmp_path / "small_demo.py").write_text(SMALL_DEMO)
    command = [sys.executable, "-m", "firststep", "--import", "small_demo", "demo"]
    process = subprocess.Popen(
        [*command, "--updates", "100000", "--out", str(out)],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    training: list[Path] = []
    while len(training) < len(MODELS) and process.poll() is None:
        time.sleep(0.1)
        training = [path.parent for path in out.glob("*/tensorboard")]  # made when the first update begins
    workers = workers_of(process.pid)
    assert len(workers) == len(training)
    if death == signal.SIGKILL:
        process.kill()
    else:
        os.killpg(process.pid, death)
    errors = process.communicate()[1]
    assert all_gone(workers, 240)
    assert "Traceback" not in errors
    if death == signal.SIGINT:
        assert process.returncode == 130
        assert f"firststep: stopped and saved in {out}; the same command resumes it" in errors
    for run in training:
        # Before the first validation: this checkpoint was made because the worker was asked to stop.
        assert saved_update(run / "checkpoints" / "last.safetensors") > 0


def test_only_a_demo_of_the_same_settings_that_was_cut_goes_on(tmp_path: Path) -> None:
    """The campaign of kills tests that it does."""
    config = replace(
        recipe("demo"), filters=4, image_size=16, shots=2, updates=1, validation_episodes=2, threads=1
    )
    assert not is_cut_demo(tmp_path / "absent", config)
    assert is_cut_demo(tmp_path, config)  # it had not begun
    train(replace(config, conditioning="none"), tmp_path / "maml")
    assert is_cut_demo(tmp_path, config)
    assert not is_cut_demo(tmp_path, replace(config, updates=2))
    (tmp_path / "letter.txt").write_text("somebody's")
    assert not is_cut_demo(tmp_path, config)
    (tmp_path / "letter.txt").unlink()
    (tmp_path / LAST_FILE).parent.mkdir()
    (tmp_path / LAST_FILE).write_text("finished")
    assert not is_cut_demo(tmp_path, config)


@pytest.mark.parametrize("share_cores", [False, True])
def test_three_models_share_two_cores_only_where_asked(
    share_cores: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firststep.jobs.capacity.available_cores", lambda: 2)
    capacity = Capacity(3, share_cores=share_cores)
    config = replace(recipe("demo"), threads=1, device="cpu")
    started = [capacity.acquire(config) is not None for _ in range(3)]
    assert started == [True, True, share_cores]
