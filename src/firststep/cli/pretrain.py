"""``firststep pretrain``: train a plain classifier over all training classes, for ``train --init``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from firststep.cli.arguments import call
from firststep.cli.names import DatasetName, any_of, backbone_names
from firststep.errors import FirststepError
from firststep.training import PretrainConfig

BACKBONE = f"Network: {any_of(backbone_names())}; networks with pretrained weights are refused."


def main(arguments: list[str]) -> None:
    """Parse the arguments; ``--resume`` takes no configuration."""
    if any(argument.split("=")[0] == "--resume" for argument in arguments):
        call(_resume, "firststep pretrain", arguments)
    else:
        call(_start, "firststep pretrain", arguments)


@dataclass(frozen=True, kw_only=True)
class _Flags(PretrainConfig):
    data: DatasetName = PretrainConfig.data
    backbone: Annotated[str, tyro.conf.arg(help=BACKBONE)] = PretrainConfig.backbone


def _start(
    config: Annotated[_Flags, tyro.conf.OmitArgPrefixes],
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
) -> None:
    """Train a plain classifier over all training classes; meta-training can start from its weights.

    Usage: firststep pretrain [flags] --out FOLDER, then firststep train --init FOLDER [flags].
    After every epoch, nearest class means on its features classify validation episodes. The best weights are
    kept. firststep pretrain --resume FOLDER resumes an interrupted one.

    Args:
        config: The settings.
        out: Folder of the new pretraining; named after the settings, under runs/, if left out.
    """
    width = "" if config.filters is None else f"-{config.filters}"
    name = f"pretrain-{config.data}-{config.backbone}{width}-seed{config.seed}"
    _run(PretrainConfig(**vars(config)), None, out or Path("runs") / name)


def _resume(resume: Annotated[Path, tyro.conf.arg(metavar="FOLDER")]) -> None:
    """Resume an interrupted pretraining; the result equals that of an uninterrupted one.

    Args:
        resume: Folder of the pretraining. Its own configuration is used.
    """
    _run(None, resume, None)


def _run(config: PretrainConfig | None, resume: Path | None, out: Path | None) -> None:
    from firststep.cli.progress import pretraining_view, progress_bar
    from firststep.training import Pretraining, open_data, pretrain
    from firststep.utils import check_folder_writable

    folder = resume or out or Path()
    chosen = config or Pretraining(folder).config
    check_folder_writable(folder)
    with progress_bar() as progress:
        data = open_data(chosen, progress)
    try:
        with pretraining_view() as on_step:
            done = pretrain(config, out, resume=resume, on_step=on_step, data=data)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; resume after the last complete epoch with: firststep pretrain --resume {folder}"
        ) from None
    except OSError as error:
        raise FirststepError(f"cannot write to {folder}: {error.strerror or error}") from error
    print(f"pretrained: {done.folder}")
    print(f"meta-train from it with: firststep train --init {done.folder}")
