"""``firststep train``: meta-train a model by a recipe and flags, or resume a run."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import tyro

from firststep.cli.arguments import call
from firststep.cli.settings import Settings, SettingsFlags
from firststep.errors import FirststepError
from firststep.training import RECIPES, TrainConfig, recipe

Backend = Literal["auto", "gloo", "nccl"]


def main(arguments: list[str]) -> None:
    """Parse the arguments: RECIPE, if any, sets the flags' defaults; ``--resume`` takes no configuration."""
    if any(argument.split("=")[0] == "--resume" for argument in arguments):
        asks_for_help = {"-h", "--help"} & set(arguments)  # not the folder after --resume
        call(_resume, "firststep train", ["--help"] if asks_for_help else arguments)
        return
    chosen = arguments[0] if arguments and not arguments[0].startswith("-") else None
    default = recipe(chosen) if chosen else TrainConfig()
    rest = arguments[1:] if chosen else arguments
    if any(argument.split("=")[0] == "--sweep" for argument in rest):
        from firststep.cli import sweep

        sweep.main(rest, chosen, default)
        return
    groups = Settings.of(default)

    def start(
        settings: SettingsFlags = groups,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
        backend: Backend = "auto",
    ) -> None:
        config = settings.joined()
        _run(config, resume=None, out=out or default_folder(config), backend=backend)

    start.__doc__ = f"""Meta-train a model.

    Usage (--resume --help and --sweep --help explain the last two):
      firststep train [RECIPE] [flags]
      firststep train --resume RUN
      firststep train [RECIPE] [flags] --sweep method=maml,meta-sgd seed=0,1,2

    Recipes, which set the defaults of the flags below:
{_recipes()}

    Args:
        settings: The settings.
        out: Folder of the new run; named after the settings, under runs/, if left out. Under torchrun, an
            existing run of the same settings is resumed.
        backend: Communication under torchrun: gloo or nccl; auto fits the device.
    """
    call(start, f"firststep train{f' {chosen}' if chosen else ''}", rest)


def _recipes() -> str:
    """Return one line per recipe."""
    width = max(map(len, RECIPES))
    about = {name: (make.__doc__ or "").splitlines()[0] for name, make in RECIPES.items()}
    return "\n".join(f"      {name:{width}}  {text}" for name, text in about.items())


def default_folder(config: TrainConfig) -> Path:
    """Return a folder name that tells runs apart."""
    loss = "" if config.conditioning_loss is None else f"-{config.subset}"
    method = f"{config.method_slug}-{config.conditioning}{loss}"
    shape = f"{config.shots}shot" if config.tasks else f"{config.ways}way-{config.shots}shot"
    source = re.sub(r"[^\w.-]+", "-", config.source)
    return Path("runs") / f"{source}-{config.architecture}-{method}-{shape}-seed{config.seed}"


def _resume(
    resume: Annotated[Path, tyro.conf.arg(metavar="RUN")],
    updates: int | None = None,
    restart: bool = False,
    backend: Backend = "auto",
) -> None:
    """Resume a run that was interrupted or killed; the result equals that of an uninterrupted run.

    Args:
        resume: Folder of the run. Its own configuration is used, except for the flags below.
        updates: Train to this number of meta-updates instead, larger or smaller.
        restart: Start over if the run has lost its last checkpoint; its logs are dropped.
        backend: Communication under torchrun: gloo or nccl; auto fits the device.
    """
    _run(None, resume=resume, out=None, updates=updates, restart=restart, backend=backend)


def _run(
    config: TrainConfig | None,
    resume: Path | None,
    out: Path | None,
    backend: Backend,
    updates: int | None = None,
    restart: bool = False,
) -> None:
    from firststep.cli.progress import progress_bar, training_view
    from firststep.distributed import join, launched
    from firststep.training import (
        Run,
        check_every_rank_has_tasks,
        choose_device,
        open_run,
        open_training_data,
        train,
    )
    from firststep.utils import check_folder_writable

    with join(backend) as team, ExitStack() as shown:
        chosen = config or team.on_rank0(lambda: open_run(resume or Path()).config)
        check_every_rank_has_tasks(chosen, team)
        team.on_rank0(lambda: check_folder_writable(resume or out or Path()))
        with progress_bar(team.is_rank0) as progress:
            data = team.on_all_ranks(lambda: open_training_data(chosen, progress))
        device = team.device(lambda: choose_device(chosen.device))
        where = Run(resume or out or Path())
        on_update = None
        if team.is_rank0:
            on_update = shown.enter_context(training_view(where.name, chosen.meta_batch, device))
        try:
            run = train(
                config, out, resume=resume, updates=updates, resume_if_exists=launched(), restart=restart,
                on_update=on_update, on_init=_say_init if team.is_rank0 else None, data=data, team=team,
            )  # fmt: skip
        except OSError as error:
            raise FirststepError(f"cannot write to {where.folder}: {error.strerror or error}") from error
    if team.is_rank0:
        print(f"trained: {run.folder}")
        print(f"test it with: firststep evaluate {run.folder}")


def _say_init(own: list[str]) -> None:
    from firststep.cli.terminal import console

    names = [name.removeprefix("network.") for name in own]
    rest = f"; with their own initial values: {', '.join(names)}" if names else ""
    console(stderr=True).print(f"starting from the given weights{rest}")
