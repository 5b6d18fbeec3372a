"""``firststep train --sweep``: the same training for every combination of some settings."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from firststep.cli.arguments import call
from firststep.cli.executors import ExecutorName, choose_executor
from firststep.cli.settings import Settings, SettingsFlags
from firststep.errors import FirststepError
from firststep.training import TrainConfig

if TYPE_CHECKING:
    from firststep.jobs import Executor, Job
    from firststep.utils import Table


def main(arguments: list[str], recipe: str | None, default: TrainConfig) -> None:
    groups = Settings.of(default)

    def start(
        sweep: Annotated[tuple[str, ...], tyro.conf.arg(metavar="FIELD=VALUE,VALUE ...")],
        settings: SettingsFlags = groups,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
        executor: ExecutorName = "local",
        address: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT")] = None,
        at_once: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    ) -> None:
        """Meta-train every combination of some settings; repeat the same command to resume unfinished runs.

        Args:
            sweep: The settings that vary: flags of a training without dashes, such as method=maml,meta-sgd
                seed=0,1,2.
            settings: The settings that all runs share.
            out: Folder of the runs; named after the settings, under runs/, if left out.
            executor: local runs as many at once as this machine's cores and memory allow; inline runs one
                after another in this process; ray uses a Ray cluster.
            address: Address of the Ray cluster; auto finds one that runs on this machine.
            at_once: Largest number of runs at the same time (local).
        """
        _sweep(sweep, settings.joined(), out, choose_executor(executor, address, at_once))

    call(start, f"firststep train{f' {recipe}' if recipe else ''}", arguments)


def _sweep(sweep: tuple[str, ...], config: TrainConfig, out: Path | None, executor: Executor) -> None:
    from firststep.cli.progress import jobs_view
    from firststep.cli.terminal import console, render
    from firststep.jobs import Job, run_jobs
    from firststep.training import parse_sweep, product_of

    varied = parse_sweep(sweep)
    runs = product_of(config, varied)
    folder = out or default_folder(config, tuple(varied))
    jobs = [Job(name=name, config=each, folder=folder / name) for name, each in runs.items()]
    with jobs_view(len(jobs)) as on_event:
        failed = run_jobs(jobs, executor, on_event)
    console().print(render(_table(jobs, failed)))
    console().print(f"runs: {folder}")
    if failed:
        reasons = "; ".join(f"{name}: {why}" for name, why in failed.items())
        raise FirststepError(f"{len(failed)} of {len(jobs)} runs failed: {reasons}")


def default_folder(config: TrainConfig, varied: tuple[str, ...]) -> Path:
    """Return a folder named after the shared settings, so that the same command finds its runs again."""
    from firststep.jobs import MACHINE_SETTINGS

    common = {k: value for k, value in config.identity().items() if k not in (*varied, *MACHINE_SETTINGS)}
    digest = hashlib.sha256(json.dumps(common, sort_keys=True).encode()).hexdigest()[:8]
    shape = f"{config.shots}shot" if config.tasks else f"{config.ways}way-{config.shots}shot"
    source = re.sub(r"[^\w.-]+", "-", config.source)
    return Path("runs") / f"sweep-{source}-{shape}-{digest}"


def _table(jobs: list[Job], failed: dict[str, str]) -> Table:
    from firststep.evaluation import METRICS
    from firststep.evaluation._internal import MAIN
    from firststep.utils import MISSING, Table

    metric = METRICS[MAIN[jobs[0].config.kind]]
    unit = " %" if metric.percent else ""
    table = Table(["run", f"best validation {metric.title}{unit}", "at update"], title="sweep")
    for job in jobs:
        best = None if job.name in failed else job.run.best_validation()
        if best is None:
            table.add_row(job.name, "failed", MISSING)
            continue
        update, value, width = best
        shown = f"{100 * value:.1f} ± {100 * width:.1f}" if metric.percent else f"{value:.3g} ± {width:.2g}"
        table.add_row(job.name, shown, str(update))
    return table
