"""``firststep train``: meta-train a learner by a recipe and flags, or go on with a run."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro

from firststep.cli import sweep
from firststep.cli.progress import progress_bar
from firststep.cli.watch import training_view
from firststep.errors import FirststepError
from firststep.training import RECIPES, Run, TrainConfig, open_run, recipe, train
from firststep.training.loop import Interrupted
from firststep.training.setup import open_data


def main(arguments: list[str]) -> None:
    """RECIPE first, if any; its values are the flags' defaults. ``--resume`` takes only ``--updates``."""
    if any(argument.split("=")[0] == "--resume" for argument in arguments):
        tyro.cli(_resume, prog="firststep train", args=arguments)
        return
    chosen = arguments[0] if arguments and not arguments[0].startswith("-") else None
    default = recipe(chosen) if chosen else TrainConfig()
    rest = arguments[1:] if chosen else arguments
    if any(argument.split("=")[0] == "--sweep" for argument in rest):
        sweep.main(rest, chosen, default)
        return

    def start(
        config: Annotated[TrainConfig, tyro.conf.OmitArgPrefixes] = default,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
    ) -> None:
        _train(config, out)

    start.__doc__ = f"""Meta-train a learner.

    Usage: firststep train [RECIPE] [flags]   or   firststep train --resume RUN   or many runs at once:
    firststep train [RECIPE] [flags] --sweep method=maml,meta-sgd seed=0,1,2   (--sweep --help explains)

    A recipe sets the flags' defaults, shown below. Recipes: {_recipes()}

    Args:
        config: What to train.
        out: Folder of the new run; made from the settings, under runs/, if left out.
    """
    tyro.cli(start, prog=f"firststep train{f' {chosen}' if chosen else ''}", args=rest,
             config=(tyro.conf.FlagCreatePairsOff,))  # fmt: skip


def _recipes() -> str:
    return "; ".join(f"{name}: {(make.__doc__ or '').splitlines()[0]}" for name, make in RECIPES.items())


def default_folder(config: TrainConfig) -> Path:
    """A name that says what differs between runs."""
    term = config.conditioning if config.term is None else f"{config.conditioning}-{config.subset}"
    shape = f"{config.ways}way-{config.shots}shot"
    return Path("runs") / f"{config.data}-{config.backbone}-{config.method}-{term}-{shape}-seed{config.seed}"


def _resume(resume: Annotated[Path, tyro.conf.arg(metavar="RUN")], updates: int | None = None) -> None:
    """Go on with a run that was interrupted, killed or cut off; it ends as if it had never stopped.

    Args:
        resume: Folder of the run. Its own configuration is used: no flag but --updates is taken.
        updates: Train to this many meta-updates instead, longer or shorter.
    """
    run = open_run(resume)
    _run(run.config, resume=run.folder, out=None, updates=updates)


def _train(config: TrainConfig, out: Path | None) -> None:
    _run(config, resume=None, out=out or default_folder(config))


def _run(config: TrainConfig, resume: Path | None, out: Path | None, updates: int | None = None) -> None:
    with progress_bar() as progress:
        data = open_data(config, progress)
    where = Run(resume or out or Path())
    with training_view([where.name], config.meta_batch) as view:
        watch = partial(view, where.name)
        try:
            if resume is None:
                run = train(config, out, watch=watch, data=data)
            else:
                run = train(resume=resume, updates=updates, watch=watch, data=data)
        except Interrupted as stop:
            print(f"firststep: {stop}", file=sys.stderr)
            raise SystemExit(130) from None
        except OSError as error:
            raise FirststepError(f"cannot write to {where.folder}: {error.strerror or error}") from error
    print(f"trained: {run.folder}")
    print(f"test it with: firststep evaluate {run.folder}")
