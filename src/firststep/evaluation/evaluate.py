"""Test a meta-learner on deterministic episodes after several numbers of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from firststep.data import Dataset, TaskSource, tasks_of
from firststep.distributed import Team
from firststep.errors import FirststepError
from firststep.evaluation.evaluation import Evaluation
from firststep.evaluation.measure import measure_task, measure_tasks_and, to_task
from firststep.evaluation.metrics import MAIN
from firststep.meta_learner import MetaLearner
from firststep.task import Task

DEFAULT_STEPS = (0, 1, 2, 3, 4, 5, 10, 25, 50, 100)
DEFAULT_EPISODES = 600
TEST_SEED = 2_000_003
"""Seed of the test episodes. Training and validation have seeds of their own."""


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
    metrics: Sequence[str] | None = None,
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
        meta: learner to test.
        data: dataset of the tasks, or a task source.
        ways: classes per task, as in :meth:`MetaLearner.for_classes`. A shared or zero head takes any number;
            a head with one row per class takes at most its number of rows and uses the first ones. Default:
            the number of classes of the classifier.
        shots: support samples per class.
        queries: query samples per class.
        split: train, val or test.
        steps: numbers of inner steps to test after; they may exceed the trained number.
        episodes: number of tasks.
        rate_multiplier: factor on the length of inner steps.
        subset: parameters whose condition number is measured.
        metrics: names of the metrics; default all of the learner's kind of problem. The main one is always
            among them.
        auto: whether to also choose the number of steps on each support set and test with it.
        seed: seed of the episodes.
        label: description of the model for tables.
        run: name of the run that the model comes from.
        provenance: origin of the model, stored with the result.
        progress: called after each task.
        team: processes that share the work; each calls this function and gets the whole result. Default: this
            process alone. The numbers of an episode do not depend on the process that tests it.

    Examples:
        >>> from firststep.evaluation import evaluate
        >>> tested = evaluate(trained.meta, dataset, shots=2, queries=3, steps=[0, 1], episodes=2)
        >>> tested.at(1).shape
        (2,)
    """
    ranks = team or Team()
    if episodes < 2:
        raise FirststepError(f"`episodes` must be at least 2 for a confidence interval, got {episodes}")
    if not steps or min(steps) < 0:
        raise FirststepError(f"`steps` must be integers of at least 0, got {list(steps)}")
    if not 0 < rate_multiplier < float("inf"):
        raise FirststepError(f"`rate_multiplier` must be a positive number, got {rate_multiplier}")
    try:
        meta.functional.check_spectrum(subset)
        is_source = isinstance(data, TaskSource)
        tested = meta if ways is None or is_source else meta.for_classes(ways)
    except ValueError as error:
        raise FirststepError(str(error)) from None
    if is_source:
        classes = 1
    else:
        classes = meta.num_classes if ways is None else ways
    source = tasks_of(data, split, ways=classes, shots=shots, queries=queries, seed=seed)
    main = MAIN[meta.kind]
    if metrics is not None and main not in metrics:
        metrics = [main, *metrics]
    learner = tested.scaled(rate_multiplier)

    def choice(mine: MetaLearner, task: Task) -> tuple[int, float] | None:
        return _auto(mine, task) if auto else None

    measurement, automatic = measure_tasks_and(
        choice,
        learner,
        (to_task(source[number], meta.device) for number in ranks.share(range(episodes))),
        steps=steps,
        subset=subset,
        metrics=metrics,
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
        kind=meta.kind,
    )


def _auto(meta: MetaLearner, task: Task) -> tuple[int, float]:
    """Return the number of steps chosen on a task's support set, and the main metric with it."""
    steps = meta.choose_steps(task.support_x, task.support_y).steps
    main = MAIN[meta.kind]
    return steps, measure_task(meta, task, steps=[steps], metrics=[main])[main][0]
