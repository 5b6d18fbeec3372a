"""The options of the outer loop: against torch's own, resumed bit for bit, and what they decide."""

from __future__ import annotations

import math
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from firststep import FirststepError
from firststep.cli.progress import training_view
from firststep.evaluation import EvaluationSettings, to_task
from firststep.jobs import Job
from firststep.training import (
    Interrupted,
    TrainConfig,
    TrainingProgress,
    build_meta_learner,
    load_trained,
    open_data,
    train,
    training_episodes,
)
from firststep.training.schedule import scheduled_rate
from runs import TINY, same_run

OUTER = replace(
    TINY,
    updates=6,
    validate_every=2,
    optimizer="adamw",
    weight_decay=0.1,
    schedule="cosine",
    warmup=2,
    clip_norm=0.5,
    ema=0.6,
    outer_rate=0.01,
)


def by_hand(config: TrainConfig) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Run the same training as a plain PyTorch loop; return the weights and their average."""
    data = open_data(config)
    meta = build_meta_learner(config, data.preprocessing)
    episodes = training_episodes(config, data)
    assert config.clip_norm is not None
    assert config.ema is not None
    assert config.weight_decay is not None
    optimizer = torch.optim.AdamW(meta.parameters(), config.outer_rate, weight_decay=config.weight_decay)
    rest = config.total_updates - config.warmup
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, 1 / config.warmup, 1.0, config.warmup - 1),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, rest),
        ],
        [config.warmup],
    )
    average = {name: value.detach().clone() for name, value in meta.named_parameters()}
    for update in range(config.total_updates):
        optimizer.zero_grad()
        first = update * config.meta_batch
        meta([to_task(episodes[first + n], meta.device) for n in range(config.meta_batch)]).backward()
        torch.nn.utils.clip_grad_norm_(meta.parameters(), config.clip_norm)
        optimizer.step()
        schedule.step()
        decay = min(config.ema, (1 + update) / (10 + update))
        for name, value in meta.named_parameters():
            average[name] = decay * average[name] + (1 - decay) * value.detach()
    return dict(meta.state_dict()), average


def test_it_is_the_loop_that_one_writes_with_torchs_own_parts(tmp_path: Path) -> None:
    last = train(OUTER, tmp_path / "run").load("last", torch.device("cpu"))
    weights, average = by_hand(OUTER)
    for name, expected in weights.items():
        torch.testing.assert_close(last.model[name], expected, rtol=2e-4, atol=2e-6)
    assert set(last.average) == set(average)
    for name, expected in average.items():
        torch.testing.assert_close(last.average[name], expected, rtol=2e-4, atol=2e-6)


def test_clipping_changes_the_step_and_the_norm_is_logged(tmp_path: Path) -> None:
    free = train(replace(OUTER, clip_norm=None), tmp_path / "free")
    clipped = train(OUTER, tmp_path / "clipped")
    norms = [entry["gradient_norm"] for entry in free.metrics()]
    assert max(norms) > 0.5
    assert free.metrics() != clipped.metrics()
    loose = train(replace(OUTER, clip_norm=1e6), tmp_path / "loose")
    assert loose.metrics() == free.metrics()


@given(
    rate=st.floats(1e-6, 1.0),
    total=st.integers(2, 1000),
    part=st.floats(0.0, 0.9),
    schedule=st.sampled_from(["constant", "cosine"]),
)
def test_rates_rise_over_the_warm_up_and_then_never_rise(
    rate: float, total: int, part: float, schedule: str
) -> None:
    warmup = int(part * total)
    rates = [scheduled_rate(rate, schedule, u, total=total, warmup=warmup) for u in range(total)]
    assert all(0 < value <= rate * (1 + 1e-12) for value in rates)
    assert rates[:warmup] == sorted(rates[:warmup])
    assert rates[warmup:] == sorted(rates[warmup:], reverse=True)
    assert math.isclose(rates[warmup], rate)
    if warmup:
        assert math.isclose(rates[warmup - 1], rate)
    if schedule == "cosine" and total - warmup > 1:
        middle = rate * math.cos(math.pi / 2 * (total - 1 - warmup) / (total - warmup)) ** 2
        assert math.isclose(rates[-1], middle, rel_tol=1e-6)


@pytest.mark.slow
def test_stopped_and_resumed_it_ends_bit_identical(tmp_path: Path) -> None:
    whole = train(OUTER, tmp_path / "whole")

    def stop(progress: TrainingProgress) -> None:
        if progress.update == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        train(OUTER, tmp_path / "cut", on_update=stop)
    train(resume=tmp_path / "cut")
    same_run(whole.folder, tmp_path / "cut")


@pytest.mark.parametrize(("seed", "average_is_better"), [(0, False), (1, True)])
def test_the_average_is_validated_beside_the_weights_and_the_better_is_kept(
    seed: int, average_is_better: bool, tmp_path: Path
) -> None:
    config = replace(OUTER, outer_rate=0.1, clip_norm=None, validation_episodes=8, seed=seed)
    seen: list[TrainingProgress] = []
    run = train(config, tmp_path / "run", on_update=seen.append)
    entries = {entry["update"]: entry for entry in run.metrics()}
    for progress in seen:
        if progress.update in entries:
            assert progress.averaged is not None
            logged = entries[progress.update]["validation_accuracy_averaged"]
            assert progress.averaged.mean().tolist() == logged
    update, accuracy, _ = run.best_validation() or (0, 0.0, 0.0)
    entry = entries[update]
    assert accuracy == max(
        max(e["validation_accuracy"][-1], e["validation_accuracy_averaged"][-1]) for e in entries.values()
    )
    better = entry["validation_accuracy_averaged"][-1] > entry["validation_accuracy"][-1]
    assert better == average_is_better, "choose seeds that show both cases"
    # The kept weights give the accuracy that was logged for them.
    data = open_data(config)
    again = load_trained(run.folder).evaluate(
        data, EvaluationSettings(split="val", seed=1_000_001, episodes=8, steps=(config.steps,))
    )
    assert again.measurement.mean()[0] == pytest.approx(accuracy)


@pytest.mark.slow
def test_the_chosen_step_decides_which_model_is_best(tmp_path: Path) -> None:
    settings = replace(TINY, updates=8, validate_every=1, validation_episodes=6, rate=2.0)
    chosen = []
    for step in (1, 2):
        run = train(replace(settings, select_step=step), tmp_path / str(step))
        accuracies = [entry["validation_accuracy"][step] for entry in run.metrics()]
        assert run.load("best", torch.device("cpu")).update == 1 + accuracies.index(max(accuracies))
        chosen.append(run.best_validation())
    assert chosen[0] != chosen[1], "these settings show nothing: take others"


def test_patience_stops_and_the_job_is_done(tmp_path: Path) -> None:
    config = replace(TINY, updates=1000, validate_every=1, patience=2, outer_rate=0.05)
    run = train(config, tmp_path / "run")
    metrics = run.metrics()
    accuracies = [entry["validation_accuracy"][-1] for entry in metrics]
    best = accuracies.index(max(accuracies))
    assert len(metrics) == best + 1 + 2 < 1000
    assert Job(name="job", config=config, folder=run.folder).is_trained()
    before = run.checkpoint_path("last").read_bytes()
    train(resume=run.folder)
    assert run.checkpoint_path("last").read_bytes() == before
    assert not Job(name="job", config=replace(config, patience=None), folder=tmp_path / "x").is_trained()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weight_decay": 0.1}, "`weight_decay` goes with `optimizer=adamw`"),
        ({"ema": 1.0}, "`ema` must be between 0 and 1"),
        ({"warmup": 4, "updates": 4}, "`warmup=4` must be less than `updates=4`"),
        ({"select_step": 3, "steps": 2}, "`select_step=3` must not exceed `steps=2`"),
        ({"patience": 0}, "`patience` must be at least 1"),
        ({"clip_norm": 0.0}, "`clip_norm` must be a positive number"),
        ({"schedule": "cosinus"}, "did you mean cosine?"),
        ({"optimizer": "sgd"}, "choose from adam, adamw"),
    ],
)
def test_wrong_options_are_named(changes: dict[str, object], words: str) -> None:
    with pytest.raises(FirststepError) as error:
        replace(TINY, **changes)  # type: ignore[arg-type]
    assert words in str(error.value)


def test_without_a_terminal_there_is_a_line_every_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with training_view("run", 4, "cpu") as view:
        for update in range(1, 11):  # 25 s each
            now += 25
            view(TrainingProgress(update=update, total=100, loss=1.5, validation=None, best=-1.0))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"run: update {u}/100" for u in (3, 6, 9)]
    assert "loss 1.500" in lines[0]
    assert "s left" in lines[0]
