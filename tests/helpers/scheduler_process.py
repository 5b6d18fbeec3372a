"""Jobs scheduled by a process of their own: ``python scheduler_process.py FOLDER UPDATES JOBS``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from firststep.evaluation import EvaluationSettings
from firststep.jobs import EvaluationSpec, Job, JobEvent, LocalExecutor, run_jobs
from runs import TINY


def jobs_of(folder: Path, updates: int, count: int) -> list[Job]:
    spec = EvaluationSpec(name="few", settings=EvaluationSettings(steps=(0, 1), episodes=2))
    return [
        Job(
            name=f"run{seed}",
            config=replace(TINY, seed=seed, updates=updates),
            folder=folder / f"run{seed}",
            evaluations=(spec,),
        )
        for seed in range(count)
    ]


def show(event: JobEvent) -> None:
    print(event.job, event.state, event.update, flush=True)


if __name__ == "__main__":
    chosen = jobs_of(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    raise SystemExit(len(run_jobs(chosen, LocalExecutor(at_once=1), show)))
