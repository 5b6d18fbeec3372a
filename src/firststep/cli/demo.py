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
MODELS = ("maml", "conditioned", "shared")
FILES = {*MODELS, "shipped", *(f"comparison.{kind}" for kind in ("csv", "md", "png", "html"))}
SHIPPED = ("builtin:glyphs-maml", "builtin:glyphs-conditioned", "builtin:glyphs")


def demo(
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
    updates: int | None = None,
    episodes: int = 100,
) -> None:
    """Meta-train on glyphs side by side, test, show the difference: MAML, with the conditioning loss (the
    paper's pair), and with the loss and a shared head (all classes start alike).

    Then test the three models that come with firststep, trained for longer by the recipes `glyphs-paper` and
    `glyphs`.

    Args:
        out: Folder for the runs, tables and images; demo, demo-2, ... if left out. A demo of the same
            settings that was cut there goes on.
        updates: Meta-updates of each run; the recipe's if left out.
        episodes: Test episodes.
    """
    config = replace(recipe("demo"), threads=max(1, available_cores() // 2))  # two at a time
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
        f"Meta-training three models on glyphs for {config.total_updates} updates: MAML, with conditioning, "
        "and with conditioning and a shared head; all else is the same."
    )
    runs = train_models(config, out)
    steps = range(config.steps + 1)
    trained = [evaluate_run(str(run.folder), steps=steps, episodes=episodes)[0] for run in runs]
    write_comparison(trained, runs, out)
    shipped = [
        evaluate_run(name, steps=steps, episodes=episodes, out=out / "shipped" / open_run(name).name)[0]
        for name in SHIPPED
    ]
    write_comparison(shipped, [open_run(name) for name in SHIPPED], out / "shipped")
    screen.print(f"\nJust trained, {config.total_updates} updates", style="bold")
    print_wide(steps_table(trained))
    screen.print(f"Shipped with firststep, {open_run(SHIPPED[0]).config.total_updates} updates", style="bold")
    print_wide(steps_table(shipped))
    for line in meaning(trained, shipped):
        screen.print(line)
    screen.print(f"\nreport: {out}/comparison.html   image: {out}/comparison.png")
    screen.print(f"the shipped models: {out}/shipped/comparison.html, {out}/shipped/comparison.png")


def jobs_of(config: TrainConfig, out: Path) -> list[Job]:
    """The trainings: the paper's pair, and ours."""
    configs = (replace(config, conditioning="none"), config, replace(config, head="shared"))
    return [
        Job(name=name, config=each, folder=out / name) for name, each in zip(MODELS, configs, strict=True)
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


def train_models(config: TrainConfig, out: Path) -> list[Run]:
    """Train them in a process each, as many at the same time as the machine has room for."""
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
    """What the tables show, in a line for each model that is compared with MAML."""
    lines = []
    for name, (maml, *others) in (("Just trained", trained), ("Shipped", shipped)):
        for change, other in zip(("conditioning", "with a shared head as well, it"), others, strict=True):
            differences = {d.step: d for d in paired_differences(maml, other)}
            last = max(differences)
            first, final = differences[1], differences[last]
            kappas, ranks = (
                [evaluation.measurement.mean(metric)[0] for evaluation in (maml, other)]
                for metric in ("condition_number", "rank")
            )
            lines.append(
                f"{name}: {change} changes the accuracy after one step by {first.difference:+.1f} "
                f"±{first.ci95:.1f} points and after {last} steps by {final.difference:+.1f} "
                f"±{final.ci95:.1f}; the condition number goes from {kappas[0]:.0f} to {kappas[1]:.0f} "
                f"(rank {ranks[0]:.3g} and {ranks[1]:.3g})."
            )
    return lines
