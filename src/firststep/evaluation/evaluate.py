"""Testing a meta-learner on deterministic episodes, at every number of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from firststep.data import Dataset, Episodes
from firststep.distributed import Team
from firststep.errors import FirststepError
from firststep.evaluation.evaluation import Evaluation
from firststep.evaluation.measure import measure_task, measure_tasks_and, to_task
from firststep.meta_learner import MetaLearner
from firststep.task import Task

DEFAULT_STEPS = (0, 1, 2, 3, 4, 5, 10, 25, 50, 100)
DEFAULT_EPISODES = 600
TEST_SEED = 2_000_003
"""Of the test episodes; training and validation have other seeds, so that changing one changes no other."""


def evaluate(
    meta: MetaLearner,
    data: Dataset,
    *,
    ways: int | None = None,
    shots: int,
    queries: int = 16,
    split: str = "test",
    steps: Sequence[int] = DEFAULT_STEPS,
    episodes: int = DEFAULT_EPISODES,
    rate_multiplier: float = 1.0,
    subset: str = "cls",
    auto: bool = False,
    seed: int = TEST_SEED,
    label: str = "",
    run: str = "",
    provenance: dict[str, Any] | None = None,
    progress: Callable[[], None] | None = None,
    team: Team | None = None,
) -> Evaluation:
    """Test a meta-learner on ``episodes`` tasks that depend on the seed alone.

    Args:
        meta: the learner.
        data: where the tasks come from.
        ways: classes of a task, as :meth:`MetaLearner.for_classes` takes them: any number where all classes
            start from one row; with a row for each class at most as many, of which the first are taken.
            Default as many as the classifier was built for.
        shots: support samples of each class.
        queries: query samples of each class.
        split: train, val or test.
        steps: numbers of inner steps to test after; beyond the trained number is fine.
        episodes: how many tasks.
        rate_multiplier: take steps so many times as long.
        subset: parameters whose condition number is measured.
        auto: also choose the number of steps on each support set and test with that.
        seed: of the episodes.
        label: what the model is, for tables.
        run: name of the run that it is from.
        provenance: how it was made, kept in the result.
        progress: called after each task.
        team: the processes that share the work, all of which call this and get the whole result; default
            this one alone. Each episode's numbers do not depend on which process tested it.

    Examples:
        >>> from firststep.evaluation import evaluate
        >>> tested = evaluate(trained.meta, dataset, shots=2, queries=3, steps=[0, 1], episodes=2)
        >>> tested.at(1).shape
        (2,)
    """
    ranks = team or Team()
    if episodes < 2:
        raise FirststepError(f"episodes must be at least 2 for a confidence interval, not {episodes}")
    if not steps or min(steps) < 0:
        raise FirststepError("steps must be numbers from 0 up")
    if not 0 < rate_multiplier < float("inf"):
        raise FirststepError(f"rate_multiplier must be a positive number, not {rate_multiplier}")
    try:
        meta.functional.check_spectrum(subset)
        tested = meta if ways is None else meta.for_classes(ways)
    except ValueError as error:
        raise FirststepError(str(error)) from None
    classes = meta.num_classes if ways is None else ways
    source = Episodes(data.split(split), ways=classes, shots=shots, queries=queries, seed=seed)
    learner = tested.scaled(rate_multiplier)

    def choice(mine: MetaLearner, task: Task) -> tuple[int, float] | None:
        return _auto(mine, task) if auto else None

    measurement, automatic = measure_tasks_and(
        choice,
        learner,
        (to_task(source[number], meta.device) for number in ranks.share(range(episodes))),
        steps=steps,
        subset=subset,
        progress=progress,
    )
    choices = ranks.gather(np.array(automatic, dtype=np.float64).reshape(-1, 2), episodes) if auto else None
    return Evaluation(
        label=label,
        run=run,
        settings={
            "data": data.name,
            "data_fingerprint": data.fingerprint,
            "split": split,
            "ways": classes,
            "shots": shots,
            "queries": queries,
            "seed": seed,
            "episodes": episodes,
            "rate_multiplier": rate_multiplier,
            "subset": subset,
        },
        measurement=measurement.gather(ranks, episodes),
        auto_steps=None if choices is None else choices[:, 0].astype(int),
        auto_accuracy=None if choices is None else choices[:, 1],
        provenance=provenance or {},
    )


def _auto(meta: MetaLearner, task: Task) -> tuple[int, float]:
    """The number of steps chosen on a task's support set, and the accuracy with it."""
    steps = meta.choose_steps(task.support_x, task.support_y).steps
    return steps, measure_task(meta, task, steps=[steps], metrics=["accuracy"])["accuracy"][0]
