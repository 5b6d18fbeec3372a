"""Test a meta-learner on deterministic episodes after several numbers of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from firststep.data import Dataset, TaskSource, tasks_of
from firststep.distributed import Team
from firststep.errors import FirststepError
from firststep.evaluation.evaluation import Evaluation
from firststep.evaluation.measure import measure_task, measure_tasks_and, to_task
from firststep.evaluation.metrics import MAIN
from firststep.evaluation.settings import DEFAULTS, EvaluationSettings
from firststep.meta_learner import MetaLearner
from firststep.task import Task


def evaluate(
    meta: MetaLearner,
    data: Dataset,
    settings: EvaluationSettings = DEFAULTS,
    *,
    metrics: Sequence[str] | None = None,
    label: str = "",
    run: str = "",
    provenance: dict[str, Any] | None = None,
    progress: Callable[[], None] | None = None,
    team: Team | None = None,
) -> Evaluation:
    """Test a meta-learner on tasks that depend on the settings' seed alone.

    Args:
        meta: learner to test.
        data: dataset of the tasks, or a task source.
        settings: the tasks, and how they are measured. What it leaves out is the number of classes of the
            classifier, 5 support and 16 query samples per class, and the subset ``cls``.
        metrics: names of the metrics; default all of the learner's kind of problem. The main one is always
            among them.
        label: description of the model for tables.
        run: name of the run that the model comes from.
        provenance: origin of the model, stored with the result.
        progress: called after each task.
        team: processes that share the work; each calls this function and gets the whole result. Default: this
            process alone. The numbers of an episode do not depend on the process that tests it.

    Examples:
        >>> from firststep.evaluation import EvaluationSettings, evaluate
        >>> tested = evaluate(trained.meta, dataset, EvaluationSettings(steps=(0, 1), shots=2, episodes=2))
        >>> tested.at(1).shape
        (2,)
    """
    ranks = team or Team()
    subset = settings.subset or "cls"
    is_source = isinstance(data, TaskSource)
    try:
        meta.functional.check_spectrum(subset)
        tested = meta if settings.ways is None or is_source else meta.for_classes(settings.ways)
    except ValueError as error:
        raise FirststepError(str(error)) from None
    ways = 1 if is_source else settings.ways or meta.num_classes
    settings = replace(settings, ways=ways, subset=subset).or_else(shots=5, queries=16)
    episodes = settings.episodes
    tasks = {name: getattr(settings, name) for name in ("ways", "shots", "queries", "seed")}
    source = tasks_of(data, settings.split, **tasks)
    main = MAIN[meta.kind]
    if metrics is not None and main not in metrics:
        metrics = [main, *metrics]
    learner = tested.scaled(settings.rate_multiplier)

    def choice(mine: MetaLearner, task: Task) -> tuple[int, float] | None:
        return _auto(mine, task) if settings.auto else None

    measurement, automatic = measure_tasks_and(
        choice,
        learner,
        (to_task(source[number], meta.device) for number in ranks.share(range(episodes))),
        steps=settings.steps,
        subset=subset,
        metrics=metrics,
        progress=progress,
    )
    choices = (
        ranks.gather(np.array(automatic, dtype=np.float64).reshape(-1, 2), episodes)
        if settings.auto
        else None
    )
    return Evaluation(
        label=label,
        run=run,
        data=data.name,
        data_fingerprint=data.fingerprint,
        settings=settings,
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
