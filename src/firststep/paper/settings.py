"""Settings of experiments: scale and data, and the rows that follow from them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from firststep.data import get_dataset_info
from firststep.errors import FirststepError
from firststep.paper.describe import describe_stand_in
from firststep.paper.experiment import Experiment, Row
from firststep.paper.record import StandIn
from firststep.paper.scale import Scale
from firststep.training import TrainConfig

EMBEDDED = "glyphs"
LONGEST_NAME = 200
"""Maximum length of a result's folder name; file systems allow 255 characters."""


@dataclass(frozen=True)
class ExperimentSettings:
    """Scale and data of experiments.

    Examples:
        >>> from firststep.paper import ExperimentSettings, Scale
        >>> settings = ExperimentSettings(Scale("smoke"), {"glyphs": None})
        >>> settings.folder(result.experiment)
        PosixPath('one-row/glyphs-smoke')
    """

    scale: Scale
    data: dict[str, Path | None]
    """Available datasets → their paths; glyphs needs none."""
    partial: bool = False
    """Whether the data may differ from the official classes and counts."""
    name: str | None = None
    """Words for the name of the result's folder; derived from the scale if None."""

    def __post_init__(self) -> None:
        if self.name is not None and not re.fullmatch(r"\w[\w.+-]*", self.name):
            raise FirststepError(f"`name={self.name}`: use letters, digits and -, for example conv4-32")
        if len(self._folder_name(list(self.data))) > LONGEST_NAME:
            raise FirststepError("too many changes for a folder name: give a short one with `name`")

    def dataset(self, experiment: Experiment) -> str | None:
        """Return the dataset of a one-dataset experiment: the paper's, or else the first that is given."""
        if experiment.datasets[0] in (*self.data, EMBEDDED):
            return experiment.datasets[0]
        return next(iter(self.data), None)

    def stand_in(self, experiment: Experiment) -> StandIn | None:
        """Return which data of the experiment are not given; None if all are."""
        if experiment.compares_datasets:
            absent = [name for name in experiment.datasets if name not in self.data]
            return StandIn(used=None, missing=absent) if absent else None
        here, paper = self.dataset(experiment), experiment.datasets[0]
        if here == paper:
            return None
        return StandIn(used=here, missing=[paper], printed=not experiment.paper.empty)

    def substitution(self, experiment: Experiment) -> str:
        """Return a sentence on data that are not the experiment's own; empty if all are."""
        return describe_stand_in(self.stand_in(experiment))

    def rows(self, experiment: Experiment) -> tuple[Row, ...]:
        """Return the experiment's rows as they are run here, without rows whose dataset is not given."""
        head = self.scale.changes.get("head")
        if head is not None and len({row.config.head for row in experiment.rows}) > 1:
            raise FirststepError(f"`head={head}`: the rows of {experiment.name} have heads of their own")
        placed: list[Row] = []
        if experiment.compares_datasets:
            placed += [row for row in experiment.rows if row.config.data in self.data]
            for other in self.data:
                if other not in experiment.datasets:
                    placed += _moved(experiment, other)
        else:
            here = self.dataset(experiment)
            if here is not None:
                placed += [replace(row, config=replace(row.config, data=here)) for row in experiment.rows]
        return tuple(self._scaled(row) for row in placed)

    def require_rows(self, experiment: Experiment) -> tuple[Row, ...]:
        """Return :meth:`rows`; raise an error if there are none."""
        rows = self.rows(experiment)
        if not rows:
            needs = f"{experiment.name} is about {', '.join(experiment.datasets)}"
            example = f"`data` {experiment.datasets[0]}=PATH"
            raise FirststepError(f"{needs}: give {example}, or `data={EMBEDDED}` for the embedded data")
        return rows

    def _scaled(self, row: Row) -> Row:
        config = replace(row.config, data_path=self.data.get(row.config.data), partial=self.partial)
        tests = tuple(test for test in map(self.scale.test, row.tests) if test is not None)
        return replace(row, config=self.scale.config(config), tests=tests)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Training seeds of every row; empty if each row has the seed of its own configuration."""
        return tuple(self.scale.changes.get("seeds", ()))

    def trainings(self, row: Row) -> tuple[TrainConfig, ...]:
        """Return the configurations of a row, one per seed."""
        return tuple(replace(row.config, seed=seed) for seed in self.seeds or (row.config.seed,))

    def flags(self) -> list[str]:
        """Return the settings as flags of the command line, with paths replaced by ``PATH``."""
        data = [name if path is None else f"{name}=PATH" for name, path in self.data.items()]
        partial = ["--partial"] if self.partial else []
        name = ["--name", self.name] if self.name else []
        return [*self.scale.flags(), *(["--data", *data] if data else []), *partial, *name]

    def folder(self, experiment: Experiment) -> Path:
        """Return the folder of the result below that of all results, such as ``table4/glyphs-laptop``."""
        one = self.dataset(experiment)
        used = list(self.data) if experiment.compares_datasets or one is None else [one]
        return Path(experiment.name) / self._folder_name(used)

    def _folder_name(self, data: list[str]) -> str:
        return "-".join([*data, self.name or self.scale.words])


def _moved(experiment: Experiment, dataset: str) -> list[Row]:
    """Return the rows of the paper's first dataset, moved to a dataset that the paper does not have."""
    first = experiment.datasets[0]
    return [
        replace(
            row,
            label=row.label.replace(first, dataset),
            over=row.over and row.over.replace(first, dataset),
            config=replace(row.config, data=dataset),
        )
        for row in experiment.rows
        if row.config.data == first
    ]


def parse_data(words: tuple[str, ...], scale: str) -> dict[str, Path | None]:
    """Parse ``NAME=PATH`` or ``glyphs``; without words, all scales but ``paper`` use glyphs.

    Examples:
        >>> from firststep.paper import parse_data
        >>> parse_data(("cub=data/birds", "glyphs"), "paper")
        {'cub': PosixPath('data/birds'), 'glyphs': None}
    """
    if not words:
        return {} if scale == "paper" else {EMBEDDED: None}
    data: dict[str, Path | None] = {}
    for word in words:
        name, _, path = word.partition("=")
        get_dataset_info(name)
        if (name == EMBEDDED) == bool(path):
            fix = f"`data={EMBEDDED}` takes no path" if path else f"`data` {name}=PATH says where it is"
            raise FirststepError(f"`data` {word}: {fix}")
        data[name] = Path(path).expanduser() if path else None
    return data
