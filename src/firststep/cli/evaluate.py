"""``firststep evaluate``: test a run after every inner step."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import tyro

from firststep.cli.progress import progress_bar
from firststep.cli.run_argument import A_RUN
from firststep.cli.terminal import console, print_wide
from firststep.distributed import Team, join
from firststep.evaluation import Evaluation, EvaluationSettings, metrics_table
from firststep.evaluation._internal import DEFAULTS, describe_test
from firststep.training import (
    BUILTIN,
    TrainConfig,
    as_trained,
    check_same_data,
    choose_device,
    data_for,
    load_trained,
    open_run,
)
from firststep.utils import check_folder_writable

SettingsFlags = Annotated[EvaluationSettings, tyro.conf.arg(name=""), tyro.conf.OmitArgPrefixes]


def evaluate(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN", help=f"{A_RUN}.")],
    /,
    *,
    settings: SettingsFlags = DEFAULTS,
    data: str | None = None,
    data_path: Path | None = None,
    which: Literal["best", "last"] = "best",
    device: str | None = None,
    backend: Literal["auto", "gloo", "nccl"] = "auto",
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
) -> None:
    """Test a run on deterministic episodes: accuracy, or the main metric of its kind, after every inner step.

    Writes a JSON file with the accuracy per episode and a CSV file with the means. Under torchrun the
    episodes are distributed over the processes; the files are the same.

    Args:
        settings: The tasks, and how they are measured.
        data: Another dataset than the run's own.
        data_path: Location of the dataset, if it has moved or is another.
        which: Checkpoint: best by validation, or last.
        device: Device: cpu, cuda, ...; as trained if left out.
        backend: Communication under torchrun: gloo or nccl; auto fits the device.
        out: Folder for the results; evaluations/ in the run's folder if left out.
    """
    with join(backend) as team:
        result, path = evaluate_run(
            run, settings, which=which, device=device, data=data, data_path=data_path, out=out, team=team
        )
    if not team.is_rank0:
        return
    screen = console()
    screen.print(
        f"{result.run} ({result.label}, update {result.provenance['update']}) on {describe_test(result)}"
    )
    print_wide(metrics_table(result))
    if result.auto_steps is not None:
        screen.print(f"automatic choice: {result.auto_steps.mean():.1f} steps on average")
    screen.print(f"written: {path}.json, {path}.csv")


def evaluate_run(
    run: str,
    settings: EvaluationSettings,
    *,
    which: str = "best",
    device: str | None = None,
    data: str | None = None,
    data_path: Path | None = None,
    out: Path | None = None,
    team: Team | None = None,
) -> tuple[Evaluation, Path]:
    """Test with a progress bar and save; return the evaluation and the files' common path."""
    ranks = team or Team()
    on = ranks.device(lambda: choose_device(device or open_run(run).config.device))
    trained = ranks.on_all_ranks(lambda: load_trained(run, which=which, device=device, on=on))
    if out is None:
        inside = not run.startswith(BUILTIN)
        out = trained.run.folder / "evaluations" if inside else Path("evaluations") / trained.run.name
    ranks.on_rank0(lambda: check_folder_writable(out))
    mine = len(ranks.share(range(settings.episodes)))
    with progress_bar(ranks.is_rank0) as progress:
        dataset = ranks.on_all_ranks(lambda: data_for(trained, data, data_path, progress))
        check_same_data(dataset, ranks)
        done = 0

        def tick() -> None:
            nonlocal done
            done += 1
            progress(f"testing {trained.run.name}", done, mine)

        result = trained.evaluate(dataset, settings, progress=tick, team=ranks)
    path = out / file_name(result.data, result.settings, trained.config, which)

    ranks.on_rank0(lambda: result.save(path))
    return result, path


def file_name(data: str, settings: EvaluationSettings, config: TrainConfig, which: str) -> str:
    """Return a file name that differs for evaluations that differ in anything but the steps."""
    settings, usual = as_trained(settings, config), as_trained(DEFAULTS, config)
    shape = f"{settings.shots}shot" if config.tasks else f"{settings.ways}way-{settings.shots}shot"
    source = re.sub(r"[^\w.-]+", "-", data)
    name = f"{source}-{settings.split}-{shape}-{settings.episodes}episodes"
    words = {"queries": "queries", "seed": "seed", "subset": "subset", "rate_multiplier": "x"}
    for field, word in words.items():
        value = getattr(settings, field)
        if value != getattr(usual, field):
            name += f"-{word}{value:g}" if isinstance(value, float) else f"-{word}{value}"
    return name if which == "best" else f"{name}-{which}"
