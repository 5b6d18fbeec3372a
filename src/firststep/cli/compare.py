"""``firststep compare``: compare runs with each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import tyro

from firststep.cli.evaluate import evaluate_run, file_name
from firststep.cli.run_argument import A_RUN
from firststep.cli.terminal import console, print_wide
from firststep.errors import FirststepError
from firststep.evaluation import (
    Evaluation,
    EvaluationSettings,
    comparison_figure,
    comparison_frame,
    comparison_table,
    html_report,
    load_evaluation,
    steps_table,
)
from firststep.evaluation._internal import DEFAULT_EPISODES, DEFAULT_STEPS
from firststep.plotting import save_figure
from firststep.training import BUILTIN, Run, as_trained, open_run
from firststep.utils import check_folder_writable, make_folder, write_text


def compare(
    runs: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN", help=f"{A_RUN}; one or more.")
    ],
    /,
    *,
    steps: tuple[int, ...] = DEFAULT_STEPS,
    episodes: int = DEFAULT_EPISODES,
    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("comparison"),
) -> None:
    """Compare runs on the same test episodes: table, paired differences, figures, one HTML report.

    A run without a test of these settings is tested first. The other runs are compared with the first one.

    Args:
        steps: Numbers of inner steps.
        episodes: Number of test episodes.
        out: Folder for comparison.csv, .md, .png and .html.
    """
    if not runs:
        raise FirststepError("compare needs at least one run")
    opened = [open_run(run) for run in runs]
    for run in opened:  # check them before hours of testing
        run.metrics()
    check_folder_writable(out)
    settings = EvaluationSettings(steps=steps, episodes=episodes)
    evaluations = [stored_or_new(name, run, settings) for name, run in zip(runs, opened, strict=True)]
    write_comparison(evaluations, opened, out)
    print_wide(steps_table(evaluations))
    console().print(f"written: {out}/comparison.html, .csv, .md, .png")


def stored_or_new(name: str, run: Run, settings: EvaluationSettings) -> Evaluation:
    """Return the stored evaluation if it equals what a new one would be, else a new one.

    The evaluations of a shipped model are in its folder.
    """
    folders = [run.folder / "evaluations"]
    if name.startswith(BUILTIN):
        folders.append(Path("evaluations") / run.name)
    config = run.config
    wanted = (config.source, run.record.data_fingerprint, as_trained(settings, config).tasks())
    for folder in folders:
        stored = folder / f"{file_name(config.source, settings, config, 'best')}.json"
        if stored.is_file() and run.checkpoint_path("best").is_file():
            found = load_evaluation(stored)
            current = run.load("best", torch.device("cpu")).digest
            same = (found.data, found.data_fingerprint, found.settings.tasks()) == wanted
            if (
                same
                and found.provenance.get("checkpoint") == current
                and (set(settings.steps) <= set(found.measurement.steps))
            ):
                return found
    return evaluate_run(name, settings)[0]


def write_comparison(evaluations: list[Evaluation], runs: list[Run], out: Path) -> None:
    make_folder(out)
    metrics = [run.metrics() for run in runs]
    write_text(out / "comparison.csv", comparison_frame(evaluations).to_csv(index=False, lineterminator="\n"))
    write_text(out / "comparison.md", comparison_table(evaluations).to_markdown())
    save_figure(comparison_figure(evaluations, metrics), out / "comparison.png")
    title = "firststep: " + " and ".join(dict.fromkeys(e.run for e in evaluations))
    write_text(out / "comparison.html", html_report(evaluations, metrics, title))
