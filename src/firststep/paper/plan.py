"""Plan the runs that experiments need; a run that several need is planned once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from firststep.errors import FirststepError
from firststep.jobs import MACHINE_SETTINGS, EvaluationSpec, Job
from firststep.paper.experiment import Experiment
from firststep.paper.settings import ExperimentSettings
from firststep.training import TrainConfig


@dataclass(frozen=True)
class PlannedRun:
    """A run, and the rows of experiments that need it.

    Examples:
        >>> from firststep.paper import plan
        >>> planned = plan([result.experiment], result.settings, Path("runs"))[0]
        >>> planned.job.is_done()
        True
    """

    job: Job
    serves: tuple[tuple[str, str], ...]
    """(experiment, label of its row)"""

    @property
    def experiments(self) -> list[str]:
        """Names of the experiments that need it."""
        return list(dict.fromkeys(name for name, _ in self.serves))

    @property
    def state(self) -> str:
        """``done``, ``to be tested``, ``interrupted`` (will be resumed) or ``to do``."""
        if self.job.is_done():
            return "done"
        if self.job.is_trained():
            return "to be tested"
        return "interrupted" if self.job.run.record_path.is_file() else "to do"


def run_name(config: TrainConfig) -> str:
    """Return a folder name that is equal exactly for runs that compute the same."""
    settings = {key: value for key, value in config.identity().items() if key not in MACHINE_SETTINGS}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:10]
    loss = "none"
    if config.conditioning_loss is not None:
        loss = config.conditioning if config.subset == "cls" else f"{config.conditioning}-{config.subset}"
    method = f"{config.method_slug}-{loss}"
    return f"{config.data}-{config.backbone}-{method}-{config.ways}way-{config.shots}shot-{digest}"


def plan(
    experiments: Sequence[Experiment],
    settings: ExperimentSettings,
    runs: Path,
    only: Sequence[str] = (),
) -> list[PlannedRun]:
    """Return every run that the experiments need, once per row and seed, with the tests of all its rows.

    Args:
        experiments: to run.
        settings: scale and data.
        runs: folder of the runs' folders.
        only: words; if given, only rows with one of them in their label or in the name of their run.

    Examples:
        >>> from firststep.paper import plan
        >>> [planned.serves for planned in plan([result.experiment], result.settings, Path("runs"))]
        [(('one-row', 'maml'),)]
    """
    configs: dict[str, TrainConfig] = {}
    tests: dict[str, dict[str, EvaluationSpec]] = {}
    serves: dict[str, list[tuple[str, str]]] = {}
    needed = [
        (place, experiment, row, config)
        for experiment in experiments
        for row in settings.require_rows(experiment)
        for place, config in enumerate(settings.trainings(row))
    ]
    # All rows of the first seed come first, so that an interrupted command leaves a whole table.
    for _, experiment, row, config in sorted(needed, key=itemgetter(0)):
        name = run_name(config)
        if only and not any(word in row.label or word in name for word in only):
            continue
        configs[name] = config
        tests.setdefault(name, {}).update({test.name: test for test in row.tests})
        serves.setdefault(name, []).append((experiment.name, row.label))
    if not configs:
        raise FirststepError(f"`only` {' '.join(only)}: no row or run has that in its name")
    return [
        PlannedRun(
            Job(name=name, config=config, folder=runs / name, evaluations=tuple(tests[name].values())),
            tuple(serves[name]),
        )
        for name, config in configs.items()
    ]
