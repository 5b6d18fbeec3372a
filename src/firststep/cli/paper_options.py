"""Options shared by the subcommands of ``firststep paper``: experiments, scale and data."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from firststep.errors import FirststepError
from firststep.paper import (
    CHANGEABLE,
    EXPERIMENTS,
    BeyondTraining,
    Changes,
    Experiment,
    ExperimentSettings,
    Scale,
    is_switch,
    parse_data,
)
from firststep.training import TrainConfig

Names = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME ...")]
ScaleName = Literal["paper", "laptop", "smoke"]
Data = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME[=PATH] ...")]
Flag = bool
Words = Annotated[str, tyro.conf.arg(metavar="WORDS")]
Folder = Annotated[Path, tyro.conf.arg(metavar="FOLDER")]
File = Annotated[Path, tyro.conf.arg(metavar="FILE")]

RUNS = Path("runs/paper")
RESULTS = Path("results")
HELP = {"filters": "Channels of a Conv block where the paper has 64; other widths change in proportion."}
"""Help of changes that differs from the help in ``TrainConfig``."""


def _attribute_docs(kind: type) -> dict[str, str]:
    """Return attribute → its docstring in the source of a dataclass and its bases."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        for name, text in pairwise(getattr(node, "body", [])):
            if isinstance(name, ast.AnnAssign) and isinstance(text, ast.Expr):
                value = text.value.value if isinstance(text.value, ast.Constant) else ""
                docs[ast.unparse(name.target)] = " ".join(str(value).split())
    return docs


def _flags() -> type:
    """Make the dataclass that tyro reads: one flag per change, with the help of the setting."""
    docs = _attribute_docs(TrainConfig) | _attribute_docs(BeyondTraining) | HELP
    fields: list[tuple[str, Any, Any]] = []
    for name, kind in CHANGEABLE.items():
        optional, default = (kind, False) if is_switch(name) else (kind | None, None)
        usual = getattr(TrainConfig, name, None)
        protocol = "" if usual is None or is_switch(name) else f" The paper's protocol: {usual}."
        arg = tyro.conf.arg(help=docs.get(name, "") + protocol)
        fields.append((name, Annotated[optional, arg], dataclasses.field(default=default)))
    return dataclasses.make_dataclass("Flags", fields, frozen=True, kw_only=True)


_Flags = _flags()
NO_FLAGS = _Flags()
if TYPE_CHECKING:
    Overrides = Any
else:
    Overrides = Annotated[_Flags, tyro.conf.OmitArgPrefixes]


def _changes(flags: Any) -> Changes:
    """Return the changes that the flags request."""
    return Changes(**{name: value for name, value in vars(flags).items() if value or not is_switch(name)})


def chosen(names: tuple[str, ...]) -> list[Experiment]:
    """Return the named experiments without repetition; ``all`` selects every experiment."""
    if not names:
        raise FirststepError("name an experiment, or all; `firststep paper list` has them")
    asked = EXPERIMENTS if "all" in names else dict.fromkeys(names)
    return [EXPERIMENTS[name]() for name in asked]


def settings_of(
    scale: str, data: tuple[str, ...], partial: bool, name: str | None, flags: Any
) -> ExperimentSettings:
    """Return the settings that these options select."""
    return ExperimentSettings(Scale(scale, _changes(flags)), parse_data(data, scale), partial, name)
