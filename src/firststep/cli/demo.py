"""``firststep demo``: the method's effect on the embedded glyphs, seen in minutes."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Annotated

import tyro

from firststep.cli.compare import write_comparison
from firststep.cli.evaluate import evaluate_run
from firststep.cli.progress import progress_bar
from firststep.cli.terminal import console, print_wide
from firststep.cli.watch import training_view
from firststep.errors import FirststepError
from firststep.evaluation import Evaluation, paired_differences, steps_table
from firststep.jobs import Job, JobEvent, run_jobs
from firststep.training import Interrupted, Run, TrainConfig, open_data, open_run, recipe
from firststep.utils import available_cores, check_folder_writable

LAST_FILE = Path("shipped") / "comparison.html"
FILES = {"maml", "conditioned", "shipped", *(f"comparison.{kind}" for kind in ("csv", "md", "png", "html"))}
TWINS = ("builtin:glyphs-maml", "builtin:glyphs")


def demo(
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
    updates: int | None = None,
    episodes: int = 100,
) -> None:
    """Meta-train MAML with and without conditioning side by side on glyphs, test both, show the difference.

    Then test the two models that come with firststep, which the recipe `glyphs` trained for longer.

    Args:
        out: Folder for the runs, tables and images; demo, demo-2, ... if left out. A demo of the same
            settings that was cut there goes on.
        updates: Meta-updates of each run; the recipe's if left out.
        episodes: Test episodes.
    """
    config = replace(recipe("demo"), threads=max(1, available_cores() // 2))  # two runs side by side
    if updates is not None:
        config = replace(config, updates=updates)
    if out is None:
        names = (Path("demo" if number == 1 else f"demo-{number}") for number in count(1))
        out = next(path for path in names if not path.exists() or is_cut_demo(path, config))
    elif out.exists() and not is_cut_demo(out, config):
        raise FirststepError(
            f"{out} exists already and is no demo of these settings that was cut; remove it, or choose "
            "another with `out`"
        )
    check_folder_writable(out)
    screen = console()
    if out.exists():
        screen.print(f"going on with the demo in {out}")
    with progress_bar() as progress:
        open_data(config, progress)
    screen.print(
        f"Meta-training twice on glyphs for {config.total_updates} updates, with and without conditioning; "
        "all else is the same."
    )
    runs = train_pair(config, out)
    steps = range(config.steps + 1)
    trained = [evaluate_run(str(run.folder), steps=steps, episodes=episodes)[0] for run in runs]
    write_comparison(trained, runs, out)
    shipped = [
        evaluate_run(name, steps=steps, episodes=episodes, out=out / "shipped" / open_run(name).name)[0]
        for name in TWINS
    ]
    write_comparison(shipped, [open_run(name) for name in TWINS], out / "shipped")
    screen.print(f"\nJust trained, {config.total_updates} updates", style="bold")
    print_wide(steps_table(trained))
    screen.print(f"Shipped with firststep, {open_run(TWINS[0]).config.total_updates} updates", style="bold")
    print_wide(steps_table(shipped))
    for line in meaning(trained, shipped):
        screen.print(line)
    screen.print(f"\nreport: {out}/comparison.html   image: {out}/comparison.png")
    screen.print(f"the shipped models: {out}/shipped/comparison.html, {out}/shipped/comparison.png")


def jobs_of(config: TrainConfig, out: Path) -> list[Job]:
    """The pair of trainings."""
    return [
        Job(name="maml", config=replace(config, conditioning="none"), folder=out / "maml"),
        Job(name="conditioned", config=config, folder=out / "conditioned"),
    ]


def is_cut_demo(out: Path, config: TrainConfig) -> bool:
    """Whether a folder holds a demo of this configuration that has not come to its end."""
    if (out / LAST_FILE).exists() or not out.is_dir():
        return False
    if {path.name for path in out.iterdir()} - FILES:
        return False
    try:
        for job in jobs_of(config, out):
            job.is_trained()  # refuses other settings
    except FirststepError:
        return False
    return True


def train_pair(config: TrainConfig, out: Path) -> list[Run]:
    """Train with and without conditioning at the same time, in a process each."""
    jobs = jobs_of(config, out)
    with training_view([job.name for job in jobs], config.meta_batch) as show:

        def on_event(event: JobEvent) -> None:
            if event.progress is not None:
                show(event.job, event.progress)
            elif event.state == "waiting" and event.text:
                print(f"{event.job}: {event.text}", file=sys.stderr)

        try:
            failed = run_jobs(jobs, on_event=on_event)
        except Interrupted:
            raise Interrupted(f"stopped and saved in {out}; the same command goes on") from None
    if failed:
        raise FirststepError("; ".join(f"{name}: {reason}" for name, reason in failed.items()))
    return [job.run for job in jobs]


def meaning(trained: list[Evaluation], shipped: list[Evaluation]) -> list[str]:
    """What the tables show, in a line for each pair."""
    lines = []
    for name, pair in (("Just trained", trained), ("Shipped", shipped)):
        differences = {d.step: d for d in paired_differences(*pair)}
        last = max(differences)
        kappas = [evaluation.measurement.mean("condition_number")[0] for evaluation in pair]
        ranks = [evaluation.measurement.mean("rank")[0] for evaluation in pair]
        first, final = differences[1], differences[last]
        lines.append(
            f"{name}: conditioning changes the accuracy after one step by {first.difference:+.1f} "
            f"±{first.ci95:.1f} points and after {last} steps by {final.difference:+.1f} ±{final.ci95:.1f}; "
            f"the condition number goes from {kappas[0]:.0f} to {kappas[1]:.0f} "
            f"(rank {ranks[0]:.3g} and {ranks[1]:.3g})."
        )
    return lines
