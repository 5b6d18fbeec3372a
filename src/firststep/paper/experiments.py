"""Experiments: which runs a table needs. A run that two experiments share is trained once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from firststep.errors import unknown
from firststep.rules import METHODS
from firststep.training import TrainConfig


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Runs to be trained, and tested on the same episodes after the same steps."""

    title: str
    runs: dict[str, TrainConfig]
    """Row of the table → what it is trained with."""
    steps: tuple[int, ...]
    episodes: int
    note: str
    """What a reader must know of the settings."""


def run_name(config: TrainConfig) -> str:
    """A folder name that is the same exactly when the configuration is."""
    facts = {key: value for key, value in config.to_json().items() if key not in ("cache", "data_path")}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:10]
    term = config.conditioning if config.term is not None else "none"
    return (
        f"{config.data}-{config.backbone}-{config.method}-{term}-{config.ways}way-{config.shots}shot-{digest}"
    )


def rivals_glyphs() -> Experiment:
    """Every method with and without the conditioning loss on glyphs, same budget and episodes."""
    base = TrainConfig(
        filters=16,
        shots=1,
        queries=5,
        rate=0.1,
        updates=200,
        meta_batch=2,
        validate_every=100,
        validation_episodes=20,
        threads=1,
    )
    runs = {}
    for method in METHODS:
        # ModGrad moves two layers only, with its authors' larger rate; all others take the same.
        own_rate = replace(base, method=method, rate=None if method == "modgrad" else base.rate)
        runs[method] = replace(own_rate, conditioning="none")
        runs[f"{method} + conditioning"] = own_rate
    return Experiment(
        title="The rivals on glyphs, 5-way 1-shot, Conv4-16",
        runs=runs,
        steps=(0, 1, 5),
        episodes=200,
        note=(
            f"{base.updates} meta-updates of {base.meta_batch} tasks each, far from converged: it shows that "
            "every method learns and what the conditioning loss does to each early on, not how they end. One "
            "training seed: the intervals are over test episodes, not over trainings."
        ),
    )


EXPERIMENTS: dict[str, Callable[[], Experiment]] = {"rivals-glyphs": rivals_glyphs}


def experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]()
