"""``firststep compare``: runs beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from firststep.cli.evaluate import evaluate_run, file_name
from firststep.cli.terminal import accuracy_table, console
from firststep.errors import FirststepError
from firststep.evaluation.comparison import markdown, table
from firststep.evaluation.evaluate import DEFAULT_EPISODES, DEFAULT_STEPS, Evaluation, load_evaluation
from firststep.evaluation.figures import comparison_figure, save_figure
from firststep.evaluation.report import report
from firststep.training.run import BUILTIN, Run, open_run
from firststep.utils.files import write_text


def compare(
    runs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    /,
    *,
    steps: tuple[int, ...] = DEFAULT_STEPS,
    episodes: int = DEFAULT_EPISODES,
    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("comparison"),
) -> None:
    """Compare runs on the same test episodes: table, paired differences, pictures, one HTML report.

    A run that was not yet tested with these settings is tested first. The first run is the one that the
    others are compared with.

    Args:
        runs: Folders of runs, or builtin:glyphs and the like.
        steps: Numbers of inner steps.
        episodes: Test episodes.
        out: Folder for comparison.csv, .md, .png and .html.
    """
    if not runs:
        raise FirststepError("compare needs at least one run")
    opened = [open_run(run) for run in runs]
    evaluations = [_evaluation(name, run, steps, episodes) for name, run in zip(runs, opened, strict=True)]
    write_comparison(evaluations, opened, out)
    screen = console()
    screen.print(accuracy_table(evaluations))
    screen.print(f"written: {out}/comparison.html, .csv, .md, .png")


def _evaluation(name: str, run: Run, steps: tuple[int, ...], episodes: int) -> Evaluation:
    """The stored one if it fits, else a new one."""
    config = run.config
    folder = Path("evaluations") / run.name if name.startswith(BUILTIN) else run.folder / "evaluations"
    stored = folder / f"{config.data}-test-{config.ways}way-{config.shots}shot-{episodes}episodes.json"
    if stored.is_file():
        found = load_evaluation(stored)
        if set(steps) <= set(found.measurement.steps) and file_name(found) == stored.stem:
            return found
    return evaluate_run(name, steps=steps, episodes=episodes)[0]


def write_comparison(evaluations: list[Evaluation], runs: list[Run], out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FirststepError(f"cannot make the folder {out}: {error.strerror}") from None
    metrics = [run.metrics() for run in runs]
    write_text(out / "comparison.csv", table(evaluations).to_csv(index=False, lineterminator="\n"))
    write_text(out / "comparison.md", markdown(evaluations))
    save_figure(comparison_figure(evaluations, metrics), out / "comparison.png")
    title = "firststep: " + " and ".join(dict.fromkeys(e.run for e in evaluations))
    write_text(out / "comparison.html", report(evaluations, metrics, title))
