"""Optuna searches the inner rate and the weight of the conditioning loss, by validation accuracy.

A trial is a run of ``firststep.training.train``: it stops early where Optuna prunes it. Choices are made on
validation classes only; test the best trial once. Run: python examples/with_optuna.py
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import optuna

from firststep.training import TrainConfig, TrainingProgress, train

TINY = TrainConfig(
    filters=8, image_size=16, shots=1, queries=5, steps=3, head="shared", updates=20, meta_batch=2,
    validate_every=10, validation_episodes=10, threads=1, log="none",
)  # fmt: skip
STEP = 1
"""The inner step whose accuracy counts."""


def objective(trial: optuna.Trial, folder: Path) -> float:
    config = replace(
        TINY,
        rate=trial.suggest_float("rate", 0.01, 0.5, log=True),
        gamma=trial.suggest_float("gamma", 0.1, 10.0, log=True),
        select_step=STEP,
    )

    def report(progress: TrainingProgress) -> None:
        if progress.validation is not None:
            trial.report(float(progress.validation.mean()[STEP]), progress.update)
            if trial.should_prune():
                raise optuna.TrialPruned

    best = train(config, folder / f"trial-{trial.number}", on_update=report).best_validation()
    assert best is not None
    return best[1]


def main(trials: int = 6) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler, pruner = optuna.samplers.TPESampler(seed=0), optuna.pruners.MedianPruner(n_startup_trials=2)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    with tempfile.TemporaryDirectory() as folder:
        study.optimize(lambda trial: objective(trial, Path(folder)), n_trials=trials)
    pruned = sum(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)
    print(f"best after step {STEP}: {100 * study.best_value:.0f} % with {study.best_params}; {pruned} pruned")
    return study


if __name__ == "__main__":
    main()
