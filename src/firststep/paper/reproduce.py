"""Run experiments and collect their results in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from firststep.errors import FirststepError
from firststep.jobs import Executor, run_jobs
from firststep.paper.experiment import Experiment
from firststep.paper.experiment_result import ExperimentResult, collect_result
from firststep.paper.plan import plan
from firststep.paper.settings import ExperimentSettings


class RunsFailed(FirststepError):
    """Raised if some runs failed; the others are done.

    Examples:
        >>> from firststep.paper import RunsFailed
        >>> print(RunsFailed({"seed 0": "out of memory"}, total=3))
        1 of 3 runs failed: seed 0: out of memory
    """

    def __init__(self, failed: dict[str, str], total: int) -> None:
        reasons = "; ".join(f"{name}: {why}" for name, why in failed.items())
        super().__init__(f"{len(failed)} of {total} runs failed: {reasons}")


def run_experiments(
    experiments: Sequence[Experiment],
    settings: ExperimentSettings,
    runs: Path,
    executor: Executor | None = None,
) -> list[ExperimentResult]:
    """Train and test what is missing, then collect the results.

    Args:
        experiments: to run.
        settings: scale and data.
        runs: folder of the runs; a configuration is trained once.
        executor: where to run; by default as many processes as this machine allows.

    Examples:
        >>> from firststep.jobs import InlineExecutor
        >>> from firststep.paper import run_experiments
        >>> experiments = [result.experiment]
        >>> (again,) = run_experiments(experiments, result.settings, Path("runs"), InlineExecutor())
        >>> again.table.columns == result.table.columns
        True
    """
    planned = plan(experiments, settings, runs)
    if failed := run_jobs([each.job for each in planned], executor):
        raise RunsFailed(failed, len(planned))
    return [collect_result(experiment, settings, runs) for experiment in experiments]
