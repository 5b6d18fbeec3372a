"""Training and testing the runs of an experiment: skips what is done, resumes what was cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from firststep.errors import FirststepError
from firststep.evaluation.evaluate import Evaluation, load_evaluation
from firststep.fleet import Executor, Job, Report, Test, run_fleet
from firststep.paper.experiments import Experiment, run_name

Watch = Callable[[str, str], None]


def run_experiment(
    experiment: Experiment, root: Path, watch: Watch | None = None, executor: Executor | None = None
) -> dict[str, str]:
    """Train and test what is missing; returns what failed, and why.

    Args:
        experiment: what to run.
        root: folder of the runs; each is in a folder named by its configuration.
        watch: called with a row's name and what became of it.
        executor: where the runs are trained; default as many at once as this machine allows.
    """
    rows = {run_name(config): row for row, config in experiment.runs.items()}  # equal runs share a folder
    jobs = [
        Job(
            name=row,
            config=experiment.runs[row],
            folder=root / folder,
            tests=(_test(experiment.steps, experiment.episodes),),
        )
        for folder, row in rows.items()
    ]

    def tell(report: Report) -> None:
        if watch is not None and report.state in ("done", "was done", "failed"):
            outcome = {"done": report.text, "was done": report.state, "failed": f"failed: {report.text}"}
            watch(report.job, outcome[report.state])

    return run_fleet(jobs, executor, tell)


def _test(steps: tuple[int, ...], episodes: int) -> Test:
    return Test(name=f"experiment-{episodes}", options={"steps": steps, "episodes": episodes})


def evaluation_path(folder: Path, episodes: int) -> Path:
    return _test((), episodes).path(folder)


def collect(experiment: Experiment, root: Path) -> dict[str, Evaluation | None]:
    """What exists of an experiment's results: row → evaluation, or None where it is missing."""
    found: dict[str, Evaluation | None] = {}
    for row, config in experiment.runs.items():
        path = evaluation_path(root / run_name(config), experiment.episodes).with_suffix(".json")
        try:
            found[row] = load_evaluation(path) if path.is_file() else None
        except FirststepError:
            found[row] = None
    return found
