"""Where and how an experiment is run here: its scale, its data, and the rows that come of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from firststep.data.registry import entry
from firststep.errors import FirststepError
from firststep.paper.experiment import Experiment, Row
from firststep.paper.scale import Scale

EMBEDDED = "glyphs"


@dataclass(frozen=True)
class Setting:
    scale: Scale
    data: dict[str, Path | None]
    """Datasets that there are, and where; glyphs needs no place."""
    partial: bool = False
    """Whether data may differ from the official classes and counts."""

    def dataset(self, experiment: Experiment) -> str | None:
        """What an experiment on one dataset is run on: the paper's own, or else the first that is given."""
        if experiment.datasets[0] in (*self.data, EMBEDDED):
            return experiment.datasets[0]
        return next(iter(self.data), None)

    def replaced(self, experiment: Experiment) -> str:
        """Says when the data are not the paper's; empty where they are."""
        if experiment.compares_datasets:
            absent = [name for name in experiment.datasets if name not in self.data]
            return f"Not given, hence missing: {', '.join(absent)}." if absent else ""
        here, paper = self.dataset(experiment), experiment.datasets[0]
        if here == paper:
            return ""
        return (
            f"Run on {here} in place of {paper}, which the paper's numbers are about: compare the order and "
            "the gains, not the accuracies."
        )

    def rows(self, experiment: Experiment) -> tuple[Row, ...]:
        """The experiment's rows as they are run here; rows whose dataset is not given are left out."""
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

    def require_data(self, experiment: Experiment) -> None:
        if not self.rows(experiment):
            needs = f"{experiment.name} is about {', '.join(experiment.datasets)}"
            example = f"--data {experiment.datasets[0]}=PATH"
            raise FirststepError(f"{needs}: give {example}, or --data {EMBEDDED} for the embedded data")

    def _scaled(self, row: Row) -> Row:
        config = replace(row.config, data_path=self.data.get(row.config.data), partial=self.partial)
        tests = tuple(test for test in map(self.scale.test, row.tests) if test is not None)
        return replace(row, config=self.scale.config(config), tests=tests)

    def flags(self) -> list[str]:
        """As the command line takes it; paths are everybody's own."""
        data = [name if path is None else f"{name}=PATH" for name, path in self.data.items()]
        partial = ["--partial"] if self.partial else []
        return [*self.scale.flags(), *(["--data", *data] if data else []), *partial]

    @property
    def slug(self) -> str:
        """For file names."""
        return "-".join([self.scale.slug, *self.data])


def _moved(experiment: Experiment, dataset: str) -> list[Row]:
    """The rows of the paper's first dataset, on one that the paper does not have."""
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
    """``NAME=PATH`` or ``glyphs``; without any, glyphs for all but the paper's scale."""
    if not words:
        return {} if scale == "paper" else {EMBEDDED: None}
    data: dict[str, Path | None] = {}
    for word in words:
        name, _, path = word.partition("=")
        entry(name)
        if (name == EMBEDDED) == bool(path):
            wanted = f"--data {EMBEDDED} takes no path" if path else f"--data {name}=PATH says where it is"
            raise FirststepError(f"--data {word}: {wanted}")
        data[name] = Path(path).expanduser() if path else None
    return data
