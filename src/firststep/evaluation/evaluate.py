"""Testing a trained model on the deterministic test episodes, at every number of steps."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import firststep
from firststep.data import Dataset, Episodes
from firststep.distributed import Team
from firststep.errors import FirststepError
from firststep.evaluation.measure import Measurement, half_width, measure_task, measure_tasks
from firststep.evaluation.steps import LONGEST_AUTO, choose_for
from firststep.evaluation.trained import Trained
from firststep.rules import Rule
from firststep.task import Task
from firststep.training.setup import TEST_SEED
from firststep.utils.files import read_json, write_json, write_text

DEFAULT_STEPS = (0, 1, 2, 3, 4, 5, 10, 25, 50, 100)
DEFAULT_EPISODES = 600


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Accuracy and condition number at each step, episode by episode, with all that decided them."""

    label: str
    """What the model is, in a few words."""
    run: str
    settings: dict[str, Any]
    """What the episodes depend on: two evaluations with equal settings saw the same tasks."""
    measurement: Measurement
    auto_steps: np.ndarray | None = None
    """[tasks]: the number of steps chosen on each support set, where asked for."""
    auto_accuracy: np.ndarray | None = None
    """[tasks]: the accuracy with that number."""
    origin: dict[str, Any]
    """Training configuration, meta-update and versions."""

    def rows(self) -> list[dict[str, Any]]:
        """A row for each step: accuracy and half-width in per cent, condition number."""
        m = self.measurement
        rows: list[dict[str, Any]] = [
            {
                "step": step,
                "accuracy": 100 * float(mean),
                "ci95": 100 * float(width),
                "condition_number": float(kappa),
            }
            for step, mean, width, kappa in zip(
                m.steps, m.mean(), m.half_width(), m.condition_number(), strict=True
            )
        ]
        if self.auto_accuracy is not None:
            rows.append(
                {
                    "step": "auto",
                    "accuracy": 100 * float(self.auto_accuracy.mean()),
                    "ci95": 100 * float(half_width(self.auto_accuracy)),
                    "condition_number": None,
                }
            )
        return rows

    def at(self, step: int) -> np.ndarray:
        """Per-episode accuracies after that many steps."""
        return self.measurement.accuracy[:, self.measurement.steps.index(step)]

    def save(self, path: Path) -> tuple[Path, Path]:
        """Write ``path``.json with every episode and ``path``.csv with the means."""
        path.parent.mkdir(parents=True, exist_ok=True)
        as_json, as_csv = path.with_name(f"{path.name}.json"), path.with_name(f"{path.name}.csv")
        write_json(
            as_json,
            {
                "label": self.label,
                "run": self.run,
                "settings": self.settings,
                "summary": self.rows(),
                "origin": self.origin,
                "steps": list(self.measurement.steps),
                "accuracy": _rounded(self.measurement.accuracy),
                "log10_condition_number": _rounded(self.measurement.log_condition),
                "auto_steps": None if self.auto_steps is None else self.auto_steps.tolist(),
                "auto_accuracy": None if self.auto_accuracy is None else _rounded(self.auto_accuracy),
            },
        )
        text = io.StringIO()
        table = csv.DictWriter(text, ["step", "accuracy", "ci95", "condition_number"], lineterminator="\n")
        table.writeheader()
        table.writerows(self.rows())
        write_text(as_csv, text.getvalue())
        return as_json, as_csv


def _rounded(values: np.ndarray) -> Any:
    """Six digits: a picture more or less in an episode is far coarser."""
    return np.round(values, 6).tolist()


def load_evaluation(path: Path) -> Evaluation:
    """What :meth:`Evaluation.save` wrote."""
    content = read_json(path)
    try:
        auto = content["auto_steps"] is not None
        return Evaluation(
            label=content["label"],
            run=content["run"],
            settings=content["settings"],
            measurement=Measurement(
                steps=tuple(content["steps"]),
                accuracy=np.array(content["accuracy"]),
                log_condition=np.array(content["log10_condition_number"]),
            ),
            auto_steps=np.array(content["auto_steps"]) if auto else None,
            auto_accuracy=np.array(content["auto_accuracy"]) if auto else None,
            origin=content["origin"],
        )
    except (KeyError, TypeError) as error:
        raise FirststepError(f"{path} is not an evaluation of firststep (it lacks {error})") from None


def evaluate(
    trained: Trained,
    data: Dataset,
    *,
    split: str = "test",
    steps: Sequence[int] = DEFAULT_STEPS,
    episodes: int = DEFAULT_EPISODES,
    ways: int | None = None,
    shots: int | None = None,
    queries: int | None = None,
    rate_multiplier: float = 1.0,
    subset: str | None = None,
    auto: bool = False,
    seed: int = TEST_SEED,
    progress: Callable[[], None] | None = None,
    team: Team | None = None,
) -> Evaluation:
    """Test a model on ``episodes`` tasks that depend on the seed alone.

    Args:
        trained: the model.
        data: where the tasks come from.
        split: train, val or test.
        steps: numbers of inner steps to test after; beyond the trained number is fine.
        episodes: how many tasks.
        ways: must be what the model was trained for; its classifier has that many outputs.
        shots: support pictures of each class; default as trained.
        queries: query pictures of each class; default as trained.
        rate_multiplier: take steps so many times as long.
        subset: whose condition number; default the constrained parameters, or the classifier.
        auto: also choose the number of steps on each support set and test with that.
        seed: of the episodes.
        progress: called after each task.
        team: the processes that share the work, all of which call this and get the whole result; default
            this one alone. Each episode's numbers do not depend on who tested it.
    """
    config = trained.config
    ranks = team or Team()
    if ways is not None and ways != config.ways:
        raise FirststepError(
            f"{trained.run.folder.name} was trained for {config.ways} ways: its classifier has {config.ways} "
            f"outputs, so it cannot be tested on {ways}"
        )
    if episodes < 2:
        raise FirststepError(f"--episodes must be at least 2 for a confidence interval, not {episodes}")
    if not steps or min(steps) < 0:
        raise FirststepError("--steps must be numbers from 0 up")
    shots, queries = shots or config.shots, queries or config.queries
    source = Episodes(data.split(split), ways=config.ways, shots=shots, queries=queries, seed=seed)
    rule = trained.rule(rate_multiplier)
    subset = subset or (config.subset if config.term is not None else "cls")
    try:
        trained.setup.model.subset(subset)
    except ValueError as error:
        raise FirststepError(str(error)) from None
    automatic: list[tuple[int, float]] = []

    def tasks() -> Iterator[Task]:
        for number in ranks.share(range(episodes)):
            task = trained.setup.task(source[number])
            if auto:
                automatic.append(_auto(trained, rule, task))
            yield task

    measurement = measure_tasks(
        trained.setup.model,
        rule,
        trained.params,
        trained.own,
        tasks(),
        steps=steps,
        subset=subset,
        progress=progress,
    ).of_all(ranks, episodes)
    choices = ranks.gather(np.array(automatic, dtype=np.float64).reshape(-1, 2), episodes) if auto else None
    return Evaluation(
        label=config.describe(),
        run=trained.run.folder.name,
        settings={
            "data": data.name,
            "data_fingerprint": data.fingerprint,
            "split": split,
            "ways": config.ways,
            "shots": shots,
            "queries": queries,
            "seed": seed,
            "episodes": episodes,
            "rate_multiplier": rate_multiplier,
            "subset": subset,
        },
        measurement=measurement,
        auto_steps=None if choices is None else choices[:, 0].astype(int),
        auto_accuracy=None if choices is None else choices[:, 1],
        origin={
            "config": config.to_json(),
            "update": trained.update,
            "firststep": firststep.__version__,
            "torch": torch.__version__,
        },
    )


def _auto(trained: Trained, rule: Rule, task: Task) -> tuple[int, float]:
    """The number of steps chosen on a task's support set, and the accuracy with it."""
    choice = choose_for(trained, rule, task.support_x, task.support_y, LONGEST_AUTO)
    accuracy, _ = measure_task(
        trained.setup.model, rule, trained.params, trained.own, task, steps=[choice.steps]
    )
    return choice.steps, accuracy[0]
