"""A result as a folder: README.md, numbers.csv, result.json and, where there is one, its figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from firststep.errors import FirststepError
from firststep.paper.comparison_table import legend
from firststep.paper.experiment import Experiment
from firststep.paper.experiment_result import ExperimentResult
from firststep.paper.figures import FIGURES
from firststep.paper.settings import ExperimentSettings
from firststep.plotting import save_figure
from firststep.utils import check_format, make_folder, read_json, to_record, write_json, write_text
from firststep.utils.table import Table

DEFAULT_SEEDS = (0,)
FORMAT = "firststep-paper-result-1"
PAGE, NUMBERS, BY_SEED = "README.md", "numbers.csv", "by-seed.csv"
RECORD, FIGURE = "result.json", "figure.png"


def write_result(result: ExperimentResult, out: Path) -> Path:
    """Write the result into its folder below ``out``, which is returned.

    Examples:
        >>> from firststep.paper import write_result
        >>> sorted(path.name for path in write_result(result, Path("results")).iterdir())
        ['README.md', 'numbers.csv', 'result.json']
    """
    refuse_other_result(result.experiment, result.settings, out)
    folder = out / result.settings.folder(result.experiment)
    make_folder(folder)
    write_text(folder / PAGE, markdown(result))
    write_text(folder / NUMBERS, csv(result, result.cells))
    if len(result.settings.seeds) > 1:
        write_text(folder / BY_SEED, csv(result, result.by_seed))
    write_json(folder / RECORD, _record(result))
    if result.experiment.figure is not None:
        figure = FIGURES[result.experiment.figure](
            result.accuracies,
            result.histories,
            result.settings.scale.describe(),
            result.settings.substitution(result.experiment),
        )
        about = "; ".join(f"{name}: {text}" for name, text in result.facts.items())
        for path in (folder / FIGURE, (folder / FIGURE).with_suffix(".svg")):
            save_figure(figure, path, about)
    return folder


def refuse_other_result(experiment: Experiment, settings: ExperimentSettings, out: Path) -> None:
    """A name that the user chose must not overwrite the result of another scale, or of more seeds."""
    folder = out / settings.folder(experiment)
    if settings.name is not None and (folder / RECORD).is_file():
        found = _stored(folder / RECORD)
        scale = found.facts.get("scale")
        if scale != settings.scale.describe():
            raise FirststepError(f"{folder} holds a result with scale {scale}; choose another `name`")
        if lost := set(found.seeds) - set(settings.seeds or DEFAULT_SEEDS):
            listed = ", ".join(map(str, found.seeds))
            raise FirststepError(
                f"{folder} holds a result with seeds {listed}, of which {', '.join(map(str, sorted(lost)))} "
                "would be lost; name them in `seeds`, or choose another `name`"
            )


def markdown(result: ExperimentResult) -> str:
    experiment = result.experiment
    figure = [f"![{experiment.title}]({FIGURE})", ""] if experiment.figure is not None else []
    data = result.settings.substitution(experiment)
    lines = [
        f"# {experiment.title}",
        "",
        f"{legend(len(result.settings.seeds))} {experiment.note}".strip(),
        "",
        *([f"**{data}**", ""] if data else []),
        result.table.to_markdown(),
        *figure,
        "How it was made:",
        "",
        *(f"- {name}: {text}" for name, text in result.facts.items()),
    ]
    return "\n".join(lines) + "\n"


def csv(result: ExperimentResult, frame: pd.DataFrame) -> str:
    """Long form, after lines that start with ``#`` and say how it was made (``read_csv(comment="#")``)."""
    head = "".join(f"# {name}: {text}\n" for name, text in result.facts.items())
    return head + frame.round(4).to_csv(index=False, lineterminator="\n")


def _record(result: ExperimentResult) -> dict[str, object]:
    table = result.table
    return {
        "format": FORMAT,
        "experiment": result.experiment.name,
        "title": result.experiment.title,
        "note": result.experiment.note,
        "exists": result.exists,
        "seeds": list(result.settings.seeds or DEFAULT_SEEDS),
        "facts": result.facts,
        "table": {
            "columns": list(table.columns),
            "lines": [[cell.text for cell in row] for row in table.rows],
        },
    }


@dataclass(frozen=True, kw_only=True)
class SavedResult:
    """What was written of a result."""

    folder: Path
    experiment: str
    title: str
    note: str
    exists: bool
    seeds: list[int]
    facts: dict[str, str]
    table: Table

    @property
    def figure(self) -> Path | None:
        path = self.folder / FIGURE
        return path if path.is_file() else None


def read_results(out: Path) -> list[SavedResult]:
    """Every result below a folder, in the order of the paths.

    Examples:
        >>> from firststep.paper import read_results, write_result
        >>> _ = write_result(result, Path("results"))
        >>> len(read_results(Path("results")))
        1
    """
    return [read_result(path.parent) for path in sorted(out.rglob(RECORD))]


@dataclass(frozen=True, kw_only=True)
class _StoredTable:
    columns: list[str]
    lines: list[list[str]]


@dataclass(frozen=True, kw_only=True)
class _StoredResult:
    experiment: str
    title: str
    note: str
    exists: bool
    facts: dict[str, str]
    table: _StoredTable
    seeds: list[int] = field(default_factory=lambda: list(DEFAULT_SEEDS))
    """Results of earlier versions have one, and do not say it here."""

    def __post_init__(self) -> None:
        if len(self.table.columns) < 2:
            raise FirststepError("table.columns have less than the two that name a line")
        if any(len(line) != len(self.table.columns) for line in self.table.lines):
            raise FirststepError(f"table.lines do not all have {len(self.table.columns)} cells")


def _stored(path: Path) -> _StoredResult:
    content = read_json(path)
    check_format(content, str(path), FORMAT)
    return to_record(content, _StoredResult, str(path))


def read_result(folder: Path) -> SavedResult:
    """What :func:`write_result` wrote into this folder."""
    stored = _stored(folder / RECORD)
    table = Table(stored.table.columns, left_aligned=2)
    for line in stored.table.lines:
        table.add_row(*line)
    return SavedResult(
        folder=folder,
        experiment=stored.experiment,
        title=stored.title,
        note=stored.note,
        exists=stored.exists,
        seeds=stored.seeds,
        facts=stored.facts,
        table=table,
    )
