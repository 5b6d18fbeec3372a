"""``firststep paper``: every table and figure of the paper as a command."""

from __future__ import annotations

from typing import Annotated, Literal

import tyro
from rich.table import Table

from firststep.cli.fleet_view import fleet_view
from firststep.cli.paper_options import (
    RESULTS,
    RUNS,
    Data,
    Folder,
    Names,
    Overrides,
    ScaleName,
    chosen,
    setting_of,
)
from firststep.cli.tables import console
from firststep.errors import FirststepError
from firststep.fleet import Executor, LocalExecutor, RayExecutor, run_fleet
from firststep.paper.experiments import EXPERIMENTS
from firststep.paper.plan import plan
from firststep.paper.result import Result, gather
from firststep.paper.scale import Changes
from firststep.paper.writing import write_result


def main(arguments: list[str]) -> None:
    tyro.extras.subcommand_cli_from_dict(
        {"list": list_, "run": run, "show": show}, prog="firststep paper", args=arguments
    )


def list_() -> None:
    """List the experiments: how many runs each has at the paper's scale, and what it is."""
    table = Table("experiment", "runs", "what")
    for name, make in EXPERIMENTS.items():
        table.add_row(name, str(len(make().rows)), (make.__doc__ or "").splitlines()[0])
    console().print(table)


def run(
    names: Names,
    /,
    *,
    scale: ScaleName = "laptop",
    data: Data = (),
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="WORD ...")] = (),
    runs: Folder = RUNS,
    out: Folder = RESULTS,
    executor: Literal["local", "ray"] = "local",
    address: str | None = None,
    changes: Overrides = Changes(),
) -> None:
    """Train and test what experiments need, then show them: done runs are skipped, cut ones resumed.

    Args:
        names: Experiments, or all; `firststep paper list` has them.
        scale: paper is the paper's protocol; laptop and smoke change what they say in every output.
        data: Datasets and where they are, for example cifar-fs=PATH; glyphs is embedded and the default of
            laptop and smoke. An experiment whose dataset is not given is run on the first that is.
        only: Only rows that have one of these words in their name, for example conv4.
        runs: Folder of the runs; the same configuration is trained once, whichever experiment asks for it.
        out: Folder for the tables and figures.
        executor: local uses this machine, ray a Ray cluster.
        address: Of the Ray cluster.
        changes: What else to change of the scale.
    """
    experiments, setting = chosen(names), setting_of(scale, data, changes)
    planned = plan(experiments, setting, runs, only)
    screen = console()
    screen.print(f"{len(planned)} runs for {', '.join(e.name for e in experiments)}; {setting.scale.describe()}")
    where: Executor = RayExecutor(address) if executor == "ray" else LocalExecutor()
    with fleet_view([p.job for p in planned]) as watch:
        failed = run_fleet([p.job for p in planned], where, watch)
    for experiment in experiments:
        _show(gather(experiment, setting, runs), out)
    if failed:
        raise FirststepError(f"{len(failed)} runs failed: {'; '.join(f'{r}: {e}' for r, e in failed.items())}")


def show(
    names: Names,
    /,
    *,
    scale: ScaleName = "laptop",
    data: Data = (),
    runs: Folder = RUNS,
    out: Folder = RESULTS,
    changes: Overrides = Changes(),
) -> None:
    """Show what exists of experiments beside the paper's numbers; what is missing is marked.

    Args:
        names: Experiments, or all.
        scale: That they were run at.
        data: That they were run on.
        runs: Folder of the runs.
        out: Folder for the tables (Markdown, CSV, JSON) and figures (PNG, SVG).
        changes: What else was changed of the scale.
    """
    setting = setting_of(scale, data, changes)
    for experiment in chosen(names):
        _show(gather(experiment, setting, runs), out)


def _show(result: Result, out: Folder) -> None:
    screen = console()
    table = Table(*result.table.columns, title=result.experiment.title)
    for column in table.columns[2:]:
        column.justify = "right"
    for line in result.table.lines:
        if line[0]:
            table.add_section()
        table.add_row(*line)
    screen.print(table)
    for name, text in result.facts.items():
        screen.print(f"{name}: {text}", markup=False)
    paths = write_result(result, out)
    screen.print("written: " + ", ".join(str(path) for path in paths), markup=False)
