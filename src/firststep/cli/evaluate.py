"""``firststep evaluate``: test a run after every inner step."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from firststep.cli.progress import progress_bar
from firststep.cli.run_argument import A_RUN
from firststep.cli.terminal import console, print_wide
from firststep.distributed import Team, join
from firststep.evaluation import Evaluation, metrics_table
from firststep.evaluation._internal import DEFAULT_EPISODES, DEFAULT_STEPS, TEST_SEED, describe_tasks
from firststep.training import (
    BUILTIN,
    TrainConfig,
    check_same_data,
    choose_device,
    data_for,
    load_trained,
    open_run,
)
from firststep.utils import check_folder_writable


def evaluate(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN", help=f"{A_RUN}.")],
    /,
    *,
    steps: tuple[int, ...] = DEFAULT_STEPS,
    auto: bool = False,
    rate_multiplier: float = 1.0,
    episodes: int = DEFAULT_EPISODES,
    split: Literal["test", "val", "train"] = "test",
    ways: int | None = None,
    shots: int | None = None,
    queries: int | None = None,
    subset: str | None = None,
    data: str | None = None,
    data_path: Path | None = None,
    which: Literal["best", "last"] = "best",
    seed: int = TEST_SEED,
    device: str | None = None,
    backend: Literal["auto", "gloo", "nccl"] = "auto",
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
) -> None:
    """Test a run on deterministic episodes: accuracy, or the main metric of its kind, after every inner step.

    Writes a JSON file with the accuracy per episode and a CSV file with the means. Under torchrun the
    episodes are distributed over the processes; the files are the same.

    Args:
        steps: Numbers of inner steps after which to test; they may exceed the trained number.
        auto: Also choose the number of steps per support set by cross-validation.
        rate_multiplier: Multiply the length of inner steps by this.
        episodes: Number of test episodes.
        split: Split of the episodes.
        ways: Number of classes per task; as trained if left out. A shared or zero head takes any number. A
            per-class head uses its first rows for fewer classes, and refuses more.
        shots: Number of support images per class; as trained if left out.
        queries: Number of query images per class; as trained if left out.
        subset: Parameters whose condition number is shown; the constrained ones if left out.
        data: Another dataset than the run's own.
        data_path: Location of the dataset, if it has moved or is another.
        which: Checkpoint: best by validation, or last.
        seed: Seed of the episodes; runs are comparable if it is the same.
        device: Device: cpu, cuda, ...; as trained if left out.
        backend: Communication under torchrun: gloo or nccl; auto fits the device.
        out: Folder for the results; evaluations/ in the run's folder if left out.
    """
    with join(backend) as team:
        result, path = evaluate_run(
            run, which=which, device=device, data=data, data_path=data_path, out=out, steps=steps, auto=auto,
            rate_multiplier=rate_multiplier, episodes=episodes, split=split, ways=ways, shots=shots,
            queries=queries, subset=subset, seed=seed, team=team,
        )  # fmt: skip
    if not team.is_rank0:
        return
    screen = console()
    settings = result.settings
    screen.print(
        f"{result.run} ({result.label}, update {result.provenance['update']}) on {settings['data']} "
        f"{settings['split']}: {describe_tasks(settings, result.kind)}, {settings['episodes']} episodes"
    )
    print_wide(metrics_table(result))
    if result.auto_steps is not None:
        screen.print(f"automatic choice: {result.auto_steps.mean():.1f} steps on average")
    screen.print(f"written: {path}.json, {path}.csv")


def evaluate_run(
    run: str,
    *,
    which: str = "best",
    device: str | None = None,
    data: str | None = None,
    data_path: Path | None = None,
    out: Path | None = None,
    team: Team | None = None,
    **options: object,
) -> tuple[Evaluation, Path]:
    """Test with a progress bar and save; return the evaluation and the files' common path."""
    ranks = team or Team()
    on = ranks.device(lambda: choose_device(device or open_run(run).config.device))
    trained = ranks.on_all_ranks(lambda: load_trained(run, which=which, device=device, on=on))
    if out is None:
        inside = not run.startswith(BUILTIN)
        out = trained.run.folder / "evaluations" if inside else Path("evaluations") / trained.run.name
    ranks.on_rank0(lambda: check_folder_writable(out))
    total = options.get("episodes", DEFAULT_EPISODES)
    assert isinstance(total, int)
    mine = len(ranks.share(range(total)))
    with progress_bar(ranks.is_rank0) as progress:
        dataset = ranks.on_all_ranks(lambda: data_for(trained, data, data_path, progress))
        check_same_data(dataset, ranks)
        done = 0

        def tick() -> None:
            nonlocal done
            done += 1
            progress(f"testing {trained.run.name}", done, mine)

        result = trained.evaluate(dataset, progress=tick, team=ranks, **options)  # type: ignore[arg-type]
    path = out / file_name(result.settings, trained.config, which)

    ranks.on_rank0(lambda: result.save(path))
    return result, path


def file_name(settings: dict[str, Any], config: TrainConfig, which: str) -> str:
    """Return a file name that differs for evaluations that differ in anything but the steps."""
    s = settings
    data = re.sub(r"[^\w.-]+", "-", s["data"])
    shape = f"{s['shots']}shot" if config.tasks else f"{s['ways']}way-{s['shots']}shot"
    name = f"{data}-{s['split']}-{shape}-{s['episodes']}episodes"
    usual = usual_settings(config)
    for key, word in (
        ("queries", "queries"),
        ("seed", "seed"),
        ("subset", "subset"),
        ("rate_multiplier", "x"),
    ):
        if s[key] != usual[key]:
            name += f"-{word}{s[key]:g}" if isinstance(s[key], float) else f"-{word}{s[key]}"
    return name if which == "best" else f"{name}-{which}"


def usual_settings(config: TrainConfig) -> dict[str, Any]:
    """Return the settings of a test without flags, except the number of episodes."""
    return {
        "data": config.source,
        "split": "test",
        "ways": 1 if config.tasks else config.ways,
        "shots": config.shots,
        "queries": config.queries,
        "seed": TEST_SEED,
        "rate_multiplier": 1.0,
        "subset": config.measured_subset,
    }
