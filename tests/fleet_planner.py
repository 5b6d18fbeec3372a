"""A planner in a process of its own: ``python fleet_planner.py FOLDER UPDATES JOBS`` prints its reports."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from firststep.jobs import Job, LocalExecutor, Report, Test, run_fleet
from runs import TINY


def jobs_of(folder: Path, updates: int, count: int) -> list[Job]:
    test = Test(name="few", options={"steps": (0, 1), "episodes": 2})
    return [
        Job(
            name=f"run{seed}",
            config=replace(TINY, seed=seed, updates=updates),
            folder=folder / f"run{seed}",
            tests=(test,),
        )
        for seed in range(count)
    ]


def say(report: Report) -> None:
    print(report.job, report.state.replace(" ", "-"), report.update, flush=True)


if __name__ == "__main__":
    chosen = jobs_of(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    raise SystemExit(len(run_fleet(chosen, LocalExecutor(at_once=1), say)))
