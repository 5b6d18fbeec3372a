"""``firststep paper``: every table and figure of the paper as a command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.table import Table

from firststep.cli.executors import choose_executor
from firststep.cli.fleet_view import fleet_view
from firststep.cli.paper_options import (
    RESULTS,
    RUNS,
    Data,
    File,
    Flag,
    Folder,
    Names,
    Overrides,
    ScaleName,
    chosen,
    setting_of,
)
from firststep.cli.paper_screens import print_plan, print_result
from firststep.cli.progress import progress_bar
from firststep.cli.terminal import console
from firststep.errors import FirststepError
from firststep.jobs import run_fleet
from firststep.jobs.here import HereExecutor
from firststep.paper.changes import UNCHANGED
from firststep.paper.cost import measure_jobs
from firststep.paper.experiments import EXPERIMENTS
from firststep.paper.plan import Planned, plan
from firststep.paper.report import report as make_report
from firststep.paper.result import Result, gather
from firststep.paper.writing import make_folder, write_result
from firststep.training.loop import Interrupted
from firststep.utils.files import write_text


def main(arguments: list[str]) -> None:
    tyro.extras.subcommand_cli_from_dict(
        {"list": list_, "run": run, "show": show, "report": report}, prog="firststep paper", args=arguments
    )


def list_() -> None:
    """List the experiments: how many runs each has, and what it is."""
    table = Table("experiment", "runs", "what")
    for name, make in EXPERIMENTS.items():
        table.add_row(name, str(len(make().rows)), (make.__doc__ or "").splitlines()[0])
    screen = console()
    screen.print(table)
    screen.print(
        "`firststep paper run NAME --dry-run` shows the plan; a run that several need is trained once"
    )


def run(
    names: Names,
    /,
    *,
    scale: ScaleName = "laptop",
    data: Data = (),
    partial: Flag = False,
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="WORD ...")] = (),
    runs: Folder = RUNS,
    out: Folder = RESULTS,
    dry_run: Flag = False,
    executor: Literal["local", "here", "ray"] = "local",
    address: str | None = None,
    at_once: int | None = None,
    changes: Overrides = UNCHANGED,
) -> None:
    """Train and test what experiments need, then show them: done runs are skipped, cut ones resumed.

    Args:
        names: Experiments, or all; `firststep paper list` has them.
        scale: paper is the paper's protocol; laptop and smoke change what they say in every output.
        data: Datasets and where they are, for example cifar-fs=PATH; glyphs is embedded and the default of
            laptop and smoke. An experiment whose dataset is not given is run on the first that is.
        partial: Accept data that differs from the official classes and counts.
        only: Only rows that have one of these words in the name of the row or its run, for example conv4.
        runs: Folder of the runs; the same configuration is trained once, whichever experiment asks for it.
        out: Folder for the tables and figures.
        dry_run: Only show the plan: what is done, cut or to do, and what it takes by a measurement here.
        executor: local has a process for each run, as many at once as this machine allows; here takes one run
            after another in this process; ray uses a Ray cluster.
        address: Of the Ray cluster.
        at_once: At most so many runs at once; as many as fit this machine if left out.
        changes: What else to change of the scale.
    """
    experiments, setting = chosen(names), setting_of(scale, data, partial, changes)
    planned = plan(experiments, setting, runs, only)
    where = HereExecutor() if executor == "here" else choose_executor(executor, address, at_once)
    screen = console()
    screen.print(
        f"{len(planned)} runs for {', '.join(e.name for e in experiments)}; {setting.scale.describe()}"
    )
    if dry_run:
        _dry_run(planned)
        return
    try:
        with fleet_view(len(planned)) as watch:
            failed = run_fleet([p.job for p in planned], where, watch)
    except Interrupted as stop:
        print(f"firststep: {stop}", file=sys.stderr)
        raise SystemExit(130) from None
    for experiment in experiments:
        _show(gather(experiment, setting, runs), out)
    if failed:
        reasons = "; ".join(f"{name}: {why}" for name, why in failed.items())
        raise FirststepError(f"{len(failed)} of {len(planned)} runs failed: {reasons}")


def show(
    names: Names,
    /,
    *,
    scale: ScaleName = "laptop",
    data: Data = (),
    partial: Flag = False,
    runs: Folder = RUNS,
    out: Folder = RESULTS,
    changes: Overrides = UNCHANGED,
) -> None:
    """Show what exists of experiments beside the paper's numbers; what is missing is marked.

    Args:
        names: Experiments, or all.
        scale: That they were run at.
        data: That they were run on.
        partial: Whether the data may have been incomplete.
        runs: Folder of the runs.
        out: Folder for the tables (Markdown, CSV, JSON) and figures (PNG, SVG).
        changes: What else was changed of the scale.
    """
    setting = setting_of(scale, data, partial, changes)
    for experiment in chosen(names):
        _show(gather(experiment, setting, runs), out)


def report(*, results: Folder = RESULTS, out: File | None = None) -> None:
    """Put every result that exists on one HTML page that needs no other file.

    Args:
        results: Folder that `run` and `show` wrote into.
        out: The page; paper.html in that folder if left out.
    """
    page = out or results / "paper.html"
    text = make_report(results)
    make_folder(page.parent)
    write_text(page, text)
    console().print(f"written: {page}", markup=False)


def _dry_run(planned: list[Planned]) -> None:
    left = [each.job for each in planned if each.state != "done"]
    with progress_bar() as progress:
        costs = measure_jobs(left, progress)
    print_plan(planned, costs)


def _show(result: Result, out: Path) -> None:
    print_result(result)
    paths = write_result(result, out)
    console().print("written: " + ", ".join(map(str, paths)), markup=False)
