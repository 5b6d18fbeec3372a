"""``firststep paper``: run and show the tables and figures of the paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import tyro

from firststep.cli.arguments import call_subcommand
from firststep.cli.executors import ExecutorName, choose_executor
from firststep.cli.paper_options import (
    NO_FLAGS,
    RESULTS,
    RUNS,
    Data,
    File,
    Flag,
    Folder,
    Names,
    Overrides,
    ScaleName,
    Words,
    chosen,
    settings_of,
)
from firststep.cli.paper_screens import print_plan, print_result
from firststep.cli.progress import jobs_view, progress_bar
from firststep.cli.terminal import console, print_wide
from firststep.jobs import run_jobs
from firststep.paper import (
    EXPERIMENTS,
    ExperimentResult,
    PlannedRun,
    RunsFailed,
    collect_result,
    html_overview,
    measure_jobs,
    plan,
    refuse_other_result,
    write_result,
)
from firststep.utils import Table, check_file_writable, check_folder_writable, make_folder, write_text


def main(arguments: list[str]) -> None:
    commands: dict[str, Callable[..., None]] = {"list": list_, "run": run, "show": show, "report": report}
    call_subcommand(commands, "firststep paper", arguments)


def list_() -> None:
    """List the experiments with their description and number of runs."""
    table = Table(["experiment", "what", "runs"], left_aligned=2)
    for name, make in EXPERIMENTS.items():
        what = (make.__doc__ or "").partition("\n")[0]
        table.add_row(name, what, str(len(make().rows)))
    print_wide(table)
    console().print(
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
    name: Words | None = None,
    executor: ExecutorName = "local",
    address: str | None = None,
    at_once: int | None = None,
    changes: Overrides = NO_FLAGS,
) -> None:
    """Train and test the runs of experiments, then show the results; skip finished runs, resume others.

    Args:
        names: Experiments, or all; `firststep paper list` shows them.
        scale: paper is the paper's protocol; laptop and smoke are smaller, and every output states what they
            change.
        data: Datasets and their paths, for example cifar-fs=PATH; glyphs is embedded and the default of
            laptop and smoke. An experiment whose dataset is not given runs on the first that is.
        partial: Accept data that differs from the official classes and counts.
        only: Only rows whose name, or whose run's name, contains one of these words, for example conv4.
        runs: Folder of the runs; experiments with the same configuration share one run.
        out: Folder for the results, each in its own folder EXPERIMENT/DATA-NAME.
        name: Name in the folders of the results; the scale and its changes if left out.
        dry_run: Only show the plan: the state of every run, and an estimate of its time and memory.
        executor: local runs one process per run, as many at once as this machine allows; inline runs one
            after
            another in this process; ray uses a Ray cluster.
        address: Address of the Ray cluster.
        at_once: Largest number of runs at the same time; as many as fit this machine if left out.
        changes: Further changes to the scale.
    """
    experiments, settings = chosen(names), settings_of(scale, data, partial, name, changes)
    planned = plan(experiments, settings, runs, only)
    where = choose_executor(executor, address, at_once)
    console().print(
        f"{len(planned)} runs for {', '.join(e.name for e in experiments)}; {settings.scale.describe()}"
    )
    if dry_run:
        _dry_run(planned)
        return
    check_folder_writable(runs)
    check_folder_writable(out)
    for experiment in experiments:
        refuse_other_result(experiment, settings, out)
    with jobs_view(len(planned)) as on_event:
        failed = run_jobs([p.job for p in planned], where, on_event)
    for experiment in experiments:
        _show(collect_result(experiment, settings, runs), out)
    if failed:
        raise RunsFailed(failed, len(planned))


def show(
    names: Names,
    /,
    *,
    scale: ScaleName = "laptop",
    data: Data = (),
    partial: Flag = False,
    runs: Folder = RUNS,
    out: Folder = RESULTS,
    name: Words | None = None,
    changes: Overrides = NO_FLAGS,
) -> None:
    """Show the results of experiments beside the paper's numbers; mark missing ones.

    Args:
        names: Experiments, or all.
        scale: Scale of the runs.
        data: Datasets of the runs.
        partial: Whether the data may have been incomplete.
        runs: Folder of the runs.
        out: Folder for the results, each in its own folder EXPERIMENT/DATA-NAME.
        name: Name in the folders of the results; the scale and its changes if left out.
        changes: Further changes to the scale.
    """
    settings = settings_of(scale, data, partial, name, changes)
    for experiment in chosen(names):
        _show(collect_result(experiment, settings, runs), out)


def report(*, results: Folder = RESULTS, out: File | None = None) -> None:
    """Write one HTML page with all tables and figures of the paper, and our results beside them.

    The page is a single file.

    Args:
        results: Folder with the results of `run` and `show`.
        out: The page; paper.html in that folder if left out.
    """
    page = out or results / "paper.html"
    check_file_writable(page)
    text = html_overview(results)
    make_folder(page.parent)
    write_text(page, text)
    console().print(f"written: {page}")


def _dry_run(planned: list[PlannedRun]) -> None:
    left = [each.job for each in planned if each.state != "done"]
    with progress_bar() as progress:
        costs = measure_jobs(left, progress)
    print_plan(planned, costs)


def _show(result: ExperimentResult, out: Path) -> None:
    print_result(result)
    console().print(f"written: {write_result(result, out)}")
