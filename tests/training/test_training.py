"""The outer loop: it learns, logs, selects, resumes bit for bit and refuses what it must."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from firststep import FirststepError
from firststep.methods import METHODS
from firststep.training import (
    Interrupted,
    TrainConfig,
    TrainingProgress,
    load_trained,
    open_run,
    train,
)
from runs import TINY, TINY_FLAGS, tiny_run
from selection import KINDS_OF_RULES, slow_except
from warm_cli import WarmCommands


def same_files(first: Path, second: Path) -> None:
    """Check that checkpoints and metrics are bit-identical."""
    for name in ("checkpoints/last.safetensors", "checkpoints/best.safetensors", "metrics.jsonl"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_a_run_is_a_folder_with_all_that_was_seen(tmp_path: Path) -> None:
    seen: list[TrainingProgress] = []
    run = train(replace(TINY, all_every=1), tmp_path / "run", on_update=seen.append)
    assert [progress.update for progress in seen] == [1, 2, 3, 4]
    record = json.loads(run.record_path.read_text())
    assert record["config"]["steps"] == 2
    assert record["data_fingerprint"]
    assert TrainConfig.from_json(record["config"]) == replace(TINY, all_every=1)
    metrics = run.metrics()
    assert [entry["update"] for entry in metrics] == [2, 4]
    for entry in metrics:
        assert len(entry["train_accuracy"]) == len(entry["validation_accuracy"]) == 3  # steps 0..K
        for kind in ("train", "validation"):
            for which in ("condition_number", "condition_number_all"):
                assert len(entry[f"{kind}_{which}"]) == 2  # stages 0..K-1
                assert all(value >= 1 for value in entry[f"{kind}_{which}"])
            for which in ("rank", "rank_all"):
                assert len(entry[f"{kind}_{which}"]) == 2
                assert all(1 <= value <= 10 for value in entry[f"{kind}_{which}"])
    assert list((run.folder / "tensorboard").iterdir())
    best = max(metrics, key=lambda entry: entry["validation_accuracy"][-1])
    assert run.load("best", torch.device("cpu")).update == best["update"]
    assert run.load("last", torch.device("cpu")).update == 4


def test_training_learns_and_conditioning_lowers_the_condition_number(tmp_path: Path) -> None:
    settings = {"filters": 8, "image_size": 32, "updates": 25, "meta_batch": 4, "validate_every": 25,
                "validation_episodes": 20, "shots": 3, "rate": 0.2, "outer_rate": 5e-3}  # fmt: skip
    plain = tiny_run(tmp_path / "plain", conditioning="none", **settings).metrics()[-1]
    conditioned = tiny_run(tmp_path / "conditioned", gamma=3.0, **settings).metrics()[-1]
    assert plain["validation_accuracy"][-1] > 0.3  # chance is 0.2
    assert conditioned["validation_accuracy"][-1] > 0.3
    assert conditioned["validation_condition_number"][0] < 0.9 * plain["validation_condition_number"][0]


def test_same_seed_same_run_and_another_seed_another(tmp_path: Path) -> None:
    state = torch.get_rng_state()
    first, second = tiny_run(tmp_path / "1"), tiny_run(tmp_path / "2")
    other = tiny_run(tmp_path / "3", seed=1)
    assert torch.equal(state, torch.get_rng_state())
    same_files(first.folder, second.folder)
    assert first.metrics() != other.metrics()


@pytest.mark.parametrize("method", slow_except(METHODS, KINDS_OF_RULES))
def test_every_method_trains_resumes_and_ends_bit_identical(method: str, tmp_path: Path) -> None:
    """Stopped in the middle by a request to stop, then resumed."""
    config = replace(TINY, method=method, rate=None, updates=3, validate_every=1)
    whole = train(config, tmp_path / "whole")

    def stop_after_one(progress: TrainingProgress) -> None:
        if progress.update == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted, match=r"after update 1 of 3 and saved.*train --resume"):
        train(config, tmp_path / "cut", on_update=stop_after_one)
    train(resume=tmp_path / "cut")
    same_files(whole.folder, tmp_path / "cut")


@pytest.mark.slow
def test_killed_again_and_again_and_resumed_it_ends_bit_identical(warm: WarmCommands, tmp_path: Path) -> None:
    """SIGKILL to a real process at different moments."""
    flags = [*TINY_FLAGS, "--updates", "12", "--validate-every", "3"]
    program = [sys.executable, "-m", "firststep", "train"]
    warm.run(["train", *flags, "--out", tmp_path / "whole"]).check_returncode()
    cut = tmp_path / "cut"
    kills = 0
    command = [*program, *flags, "--out", str(cut)]
    for lines_wanted in (1, 2, 3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        metrics = cut / "metrics.jsonl"
        while process.poll() is None:
            if metrics.exists() and metrics.read_bytes().count(b"\n") >= lines_wanted:
                time.sleep(0.02 * lines_wanted)  # into the checkpoint, between checkpoints, into an update
                process.kill()
                kills += 1
                break
            time.sleep(0.005)
        process.wait()
        command = [*program, "--resume", str(cut)]
    warm.run(["train", "--resume", cut]).check_returncode()
    assert kills >= 2
    same_files(tmp_path / "whole", cut)


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "firststep", "train", *TINY_FLAGS, "--updates", "100000", "--out", str(out)],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (out / "metrics.jsonl").exists() or not (out / "metrics.jsonl").read_bytes():
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 130
    assert f"firststep train --resume {out}" in errors
    assert "Traceback" not in errors
    assert open_run(out).load("last", torch.device("cpu")).update > 0


def test_a_finished_run_goes_on_to_more_updates_as_if_planned_so(tmp_path: Path) -> None:
    longer = tiny_run(tmp_path / "longer", updates=6)
    run = tiny_run(tmp_path / "run", updates=4)
    train(resume=run.folder, updates=6)
    same_files(longer.folder, run.folder)
    assert open_run(run.folder).config.updates == 6
    with pytest.raises(FirststepError, match="has 6 updates already, more than 5"):
        train(resume=run.folder, updates=5)


def test_two_processes_in_one_folder_are_refused(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run")
    with run.lock(), pytest.raises(FirststepError, match="another process is training in"):
        train(resume=run.folder)


def test_an_existing_run_is_never_overwritten(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run")
    before = run.checkpoint_path("last").read_bytes()
    with pytest.raises(FirststepError, match="already holds a run"):
        tiny_run(tmp_path / "run", seed=3)
    assert run.checkpoint_path("last").read_bytes() == before


def test_a_full_disk_during_a_checkpoint_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = Path.write_bytes, []

    def full_after_three(path: Path, content: bytes) -> int:
        calls.append(path) if "safetensors" in path.name else None
        if len(calls) > 3:
            real(path, content[:100])
            raise OSError(28, "No space left on device")
        return real(path, content)

    whole = tiny_run(tmp_path / "whole", updates=8)
    monkeypatch.setattr(Path, "write_bytes", full_after_three)
    with pytest.raises(FirststepError, match=r"cannot write .*No space left on device.*unchanged"):
        tiny_run(tmp_path / "cut", updates=8)
    files = sorted(path.name for path in (tmp_path / "cut" / "checkpoints").iterdir())
    assert files == ["best.safetensors", "last.safetensors"]  # no debris
    monkeypatch.undo()
    train(resume=tmp_path / "cut")
    same_files(whole.folder, tmp_path / "cut")


def test_a_loss_that_is_not_finite_stops_with_the_episode_and_keeps_the_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(FirststepError, match=r"not finite at update \d+: training episode \d+ \(seed 0\)"):
        tiny_run(tmp_path / "run", outer_rate=1e30, updates=50, validate_every=1)
    checkpoint = open_run(tmp_path / "run").load("last", torch.device("cpu"))
    assert all(torch.isfinite(value).all() for value in checkpoint.model.values())


def test_checkpoints_hold_weights_in_plain_safetensors(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", method="meta-sgd")
    tensors = load_file(run.checkpoint_path("best"))
    trained = load_trained(run.folder).meta
    assert trained.state_dict().keys() == tensors.keys()
    trained.load_state_dict(tensors)
    assert "network.classifier.weight" in tensors
    assert "rule_params.rate/classifier/weight" in tensors


def test_other_data_cannot_resume(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run")
    record = json.loads(run.record_path.read_text())
    run.record_path.write_text(json.dumps({**record, "data_fingerprint": "other"}))
    with pytest.raises(FirststepError, match="was trained on other data"):
        train(resume=run.folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backbone": "conv5"}, "`backbone` conv5 is unknown; did you mean conv6"),
        ({"method": "sgd"}, "`method` sgd is unknown"),
        ({"conditioning": "kappa"}, "`conditioning` kappa is unknown"),
        ({"data": "mnist"}, "`data` mnist is unknown"),
        ({"ways": 1}, "`ways` must be at least 2"),
        ({"updates": 0}, "`updates` must be at least 1"),
        ({"rate": -0.1}, "`rate` must be a positive number"),
        ({"gamma": float("nan")}, "`gamma` must be"),
        ({"compile": True, "engine": "unrolled"}, "`compile` works with `engine=stepwise` only"),
        ({"filters": 0}, "`filters` must be at least 1"),
        ({"filters": -1}, "`filters` must be at least 1"),
        ({"seed": 2**64}, "`seed` must be at most"),
        ({"threads": 1_000_000}, "`threads` must be at most 1024"),
        ({"device": "gpu"}, "gpu is not a device"),
        ({"subset": "emb+nonsense"}, "unknown parameter subset 'nonsense'"),
        ({"image_size": 15}, "image_size must be at least 16"),
        ({"shots": 39}, r"class .* has 40 images, but 39 shots \+ 3 queries need 42"),
        ({"backbone": "resnet10", "filters": 8}, "filters cannot be chosen for resnet10"),
    ],
)
def test_bad_settings_are_named_before_training_starts(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(FirststepError, match=message):
        tiny_run(tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()
