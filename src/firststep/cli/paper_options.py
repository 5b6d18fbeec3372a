"""What the commands of ``firststep paper`` share: which experiments, at what scale, on which data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from firststep.errors import FirststepError
from firststep.paper import EXPERIMENTS, Changes, Experiment, ExperimentSettings, Scale, parse_data
from firststep.utils.registry import UnknownName

Names = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME ...")]
ScaleName = Literal["paper", "laptop", "smoke"]
Data = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME[=PATH] ...")]
Overrides = Annotated[Changes, tyro.conf.OmitArgPrefixes]
Flag = bool
Words = Annotated[str, tyro.conf.arg(metavar="WORDS")]
Folder = Annotated[Path, tyro.conf.arg(metavar="FOLDER")]
Folders = Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FOLDER ...")]
File = Annotated[Path, tyro.conf.arg(metavar="FILE")]

RUNS = Path("runs/paper")
RESULTS = Path("results")


def chosen(names: tuple[str, ...]) -> list[Experiment]:
    """The experiments of these names, each once; ``all`` is every one."""
    if not names:
        raise FirststepError("name an experiment, or all; `firststep paper list` has them")
    wanted = EXPERIMENTS if "all" in names else dict.fromkeys(names)
    try:
        return [EXPERIMENTS[name]() for name in wanted]
    except UnknownName as error:
        raise FirststepError(str(error)) from None


def settings_of(
    scale: str, data: tuple[str, ...], partial: bool, name: str | None, overrides: Changes
) -> ExperimentSettings:
    return ExperimentSettings(Scale(scale, overrides), parse_data(data, scale), partial, name)
