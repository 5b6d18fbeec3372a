"""``firststep paper``: experiments as commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table

from firststep.cli.tables import console
from firststep.errors import FirststepError
from firststep.paper.experiments import EXPERIMENTS, experiment
from firststep.paper.runner import collect, run_experiment
from firststep.paper.tables import markdown, results_table
from firststep.training.files import write_text


def main(arguments: list[str]) -> None:
    tyro.extras.subcommand_cli_from_dict(
        {"list": list_, "run": run, "show": show}, prog="firststep paper", args=arguments
    )


def list_() -> None:
    """List the experiments."""
    table = Table("experiment", "runs", "what")
    for name, make in EXPERIMENTS.items():
        table.add_row(name, str(len(make().runs)), (make.__doc__ or "").splitlines()[0])
    console().print(table)


def run(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    /,
    *,
    runs: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("runs/paper"),
    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("results"),
) -> None:
    """Train and test what an experiment needs: done runs are skipped, cut ones resumed; then show it.

    Args:
        name: The experiment; `firststep paper list` has them.
        runs: Folder of the runs.
        out: Folder for NAME.md and NAME.csv.
    """
    chosen = experiment(name)
    screen = console()
    done = 0

    def tell(row: str, outcome: str) -> None:
        nonlocal done
        done += 1
        screen.print(f"{done}/{len(chosen.runs)} {row}: {outcome}")

    screen.print(f"{chosen.title}: {len(chosen.runs)} runs")
    failed = run_experiment(chosen, runs, tell)
    _show(name, runs, out)
    if failed:
        raise FirststepError(
            f"{len(failed)} runs failed: " + "; ".join(f"{r}: {e}" for r, e in failed.items())
        )


def show(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    /,
    *,
    runs: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("runs/paper"),
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
) -> None:
    """Show what exists of an experiment's results; what is missing is marked.

    Args:
        name: The experiment.
        runs: Folder of the runs.
        out: Also write NAME.md and NAME.csv there.
    """
    _show(name, runs, out)


def _show(name: str, runs: Path, out: Path | None) -> None:
    chosen = experiment(name)
    results = collect(chosen, runs)
    frame = results_table(chosen, results)
    table = Table(*frame.columns, title=chosen.title)
    for row in frame.itertuples(index=False):
        table.add_row(*row)
    screen = console()
    screen.print(table)
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FirststepError(f"cannot make the folder {out}: {error.strerror}") from None
        write_text(out / f"{name}.md", markdown(chosen, results, f"firststep paper run {name}"))
        write_text(out / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n"))
        screen.print(f"written: {out}/{name}.md, {out}/{name}.csv")
