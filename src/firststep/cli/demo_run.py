"""The work of ``firststep demo``: train and test one process per model, then tables and figures."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from itertools import count
from pathlib import Path

from firststep.cli.compare import stored_or_new, write_comparison
from firststep.cli.evaluate import evaluate_run, file_name
from firststep.cli.progress import jobs_view, progress_bar
from firststep.cli.terminal import COLUMNS, console, print_wide
from firststep.errors import FirststepError
from firststep.evaluation import Evaluation, EvaluationSettings, load_evaluation, paired_differences
from firststep.evaluation._internal import DEFAULT_EPISODES, describe_test
from firststep.jobs import EvaluationSpec, Job, LocalExecutor, run_jobs
from firststep.training import Interrupted, TrainConfig, open_data, open_run
from firststep.utils import Cell, Table, check_folder_writable

LAST_FILE = Path("shipped") / "comparison.html"
MODELS = {"maml": "MAML", "conditioned": "+ loss", "shared": "+ loss + head"}
"""Folders of the runs, with their names in tables."""
FILES = {*MODELS, "shipped", *(f"comparison.{kind}" for kind in ("csv", "md", "png", "html"))}
SHIPPED = ("builtin:glyphs-maml", "builtin:glyphs-conditioned", "builtin:glyphs")


def run_demo(config: TrainConfig, out: Path | None, episodes: int, *, recompute: bool) -> None:
    """Train, test and show; ``out`` None uses the first free folder.

    Args:
        config: settings of the conditioned model with a per-class head; the others differ in one setting
            each.
        out: folder for all files.
        episodes: number of test episodes.
        recompute: whether to test the shipped models too, instead of showing their stored test.
    """
    config = replace(config, threads=1)  # one process per model
    if out is None:
        names = (Path("demo" if number == 1 else f"demo-{number}") for number in count(1))
        out = next(path for path in names if not path.exists() or is_cut_demo(path, config))
    elif out.exists() and not is_cut_demo(out, config):
        raise FirststepError(
            f"{out} exists already and is not an interrupted demo of these settings; remove it, or choose "
            "another with `out`"
        )
    check_folder_writable(out)
    screen = console()
    if out.exists():
        screen.print(f"resuming the demo in {out}")
    settings = EvaluationSettings(steps=tuple(range(config.steps + 1)), episodes=episodes)
    jobs = jobs_of(config, out, episodes)
    with progress_bar() as progress:
        open_data(config, progress)
    trained = train_and_test(jobs, out)
    write_comparison(trained, [job.run for job in jobs], out)
    screen.print(f"\nJust trained, {config.total_updates} updates", style="bold")
    print_wide(effect_table(trained))
    runs = [open_run(name) for name in SHIPPED]
    if recompute:
        shipped = [
            evaluate_run(name, settings, out=out / "shipped" / run.name)[0]
            for name, run in zip(SHIPPED, runs, strict=True)
        ]
    else:
        shipped = [
            stored_or_new(name, run, replace(settings, episodes=DEFAULT_EPISODES))
            for name, run in zip(SHIPPED, runs, strict=True)
        ]
    write_comparison(shipped, runs, out / "shipped")
    words = "tested now" if recompute else "stored test; --recompute repeats it"
    screen.print(f"Shipped with firststep, {runs[0].config.total_updates} updates ({words})", style="bold")
    print_wide(effect_table(shipped))
    for line in meaning(trained, shipped):
        screen.print(textwrap.fill(line, COLUMNS))
    screen.print(f"\nreport: {out}/comparison.html   image: {out}/comparison.png")
    screen.print(f"the shipped models: {out}/shipped/comparison.html, {out}/shipped/comparison.png")


def jobs_of(config: TrainConfig, out: Path, episodes: int) -> list[Job]:
    """Return one training per model, with the test of its last checkpoint: the paper's pair, and ours.

    Not of its best checkpoint: with few validation episodes the choice is random, and MAML's first step gets
    worse with every update. So the models are compared after the same number of updates.
    """
    configs = (replace(config, conditioning="none"), config, replace(config, head="shared"))
    settings = EvaluationSettings(steps=tuple(range(config.steps + 1)), episodes=episodes)
    return [
        Job(
            name=name,
            config=each,
            folder=out / name,
            evaluations=(
                EvaluationSpec(
                    name=file_name(each.source, settings, each, "last"),
                    settings=settings,
                    which="last",
                ),
            ),
        )
        for name, each in zip(MODELS, configs, strict=True)
    ]


def is_cut_demo(out: Path, config: TrainConfig) -> bool:
    """Return whether a folder holds an unfinished demo of this configuration."""
    if (out / LAST_FILE).exists() or not out.is_dir():
        return False
    if {path.name for path in out.iterdir()} - FILES:
        return False
    try:
        for job in jobs_of(config, out, DEFAULT_EPISODES):
            job.is_trained()  # raises if the settings differ
    except FirststepError:
        return False
    return True


def train_and_test(jobs: list[Job], out: Path) -> list[Evaluation]:
    """Train and test all at once, one process each: three on two cores take 1.5 times as long as one."""
    with jobs_view(len(jobs)) as on_event:
        try:
            failed = run_jobs(jobs, LocalExecutor(share_cores=True), on_event)
        except Interrupted:
            raise Interrupted(f"stopped and saved in {out}; the same command resumes it") from None
    if failed:
        raise FirststepError("; ".join(f"{name}: {reason}" for name, reason in failed.items()))
    paths = [job.evaluations[0].path(job.folder) for job in jobs]
    return [load_evaluation(path.with_name(f"{path.name}.json")) for path in paths]


def effect_table(evaluations: list[Evaluation]) -> Table:
    """Return accuracies after every step, and the gains over MAML, in at most 80 columns."""
    maml, *others = evaluations
    table = Table(
        ["steps", "MAML", *(column for name in list(MODELS.values())[1:] for column in (name, "gain"))],
        title=f"{describe_test(maml)}: accuracy in % with 95 % half-width",
        left_aligned=0,
    )
    rows = [evaluation.rows() for evaluation in evaluations]
    gains = [paired_differences(maml, other) for other in others]
    for number, row in enumerate(rows[0]):
        cells = [Cell(f"{row['accuracy']:.1f} ± {row['ci95']:.1f}")]
        for each, gain in zip(rows[1:], gains, strict=True):
            cells.append(Cell(f"{each[number]['accuracy']:.1f} ± {each[number]['ci95']:.1f}"))
            d = gain[number]
            cells.append(Cell(f"{d.difference:+.1f} ± {d.ci95:.1f}", bold=d.is_clear))
        table.add_row(str(row["step"]), *cells)
    return table


def meaning(trained: list[Evaluation], shipped: list[Evaluation]) -> list[str]:
    """Return one line per model that says how it differs from MAML."""
    lines = []
    for name, (maml, *others) in (("Just trained", trained), ("Shipped", shipped)):
        for change, other in zip(("the loss", "with a shared head as well, it"), others, strict=True):
            differences = {d.step: d for d in paired_differences(maml, other)}
            last = maml.provenance["config"]["steps"]
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
