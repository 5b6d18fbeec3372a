"""Write a result into its folder: record, numbers, page and, where there is one, its figure."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pandas as pd

from firststep.errors import FirststepError
from firststep.paper.comparison_table import build_table
from firststep.paper.describe import conclusion, describe_scale, describe_stand_in, how_it_was_made, legend
from firststep.paper.experiment import Experiment
from firststep.paper.experiment_result import DEFAULT_SEEDS, ExperimentResult
from firststep.paper.figures import FIGURES
from firststep.paper.record import RECORD, ResultRecord, read_record_of
from firststep.paper.settings import ExperimentSettings
from firststep.paper.stored import BY_SEED, FIGURE, NUMBERS, PAGE
from firststep.plotting import save_figure
from firststep.utils import make_folder, write_text

DECIMALS, SIGNIFICANT = 4, 7
"""Stored numbers have this number of decimals or of significant digits, whichever is finer."""


def write_result(result: ExperimentResult, out: Path) -> Path:
    """Write the result into its folder below ``out``, and return the folder.

    Examples:
        >>> from firststep.paper import write_result
        >>> sorted(path.name for path in write_result(result, Path("results")).iterdir())
        ['README.md', 'numbers.csv', 'result.json']
    """
    refuse_other_result(result.experiment, result.settings, out)
    folder = out / result.settings.folder(result.experiment)
    make_folder(folder)
    cells = rounded(result.cells)  # the page shows what is stored
    write_text(folder / NUMBERS, csv_text(result.record, cells))
    if len(result.settings.seeds) > 1:
        write_text(folder / BY_SEED, csv_text(result.record, rounded(result.by_seed)))
    if result.experiment.figure is not None:
        figure = FIGURES[result.experiment.figure](
            result.accuracies,
            result.histories,
            result.settings.scale.describe(),
            result.settings.substitution(result.experiment),
        )
        about = "; ".join(f"{name}: {text}" for name, text in how_it_was_made(result.record, cells).items())
        save_figure(figure, folder / FIGURE, about)
    remarks = read_record_of(folder).remarks if (folder / RECORD).is_file() else []
    record = replace(result.record, remarks=remarks)
    record.save(folder)
    write_text(folder / PAGE, page_text(record, cells))
    return folder


def page_text(record: ResultRecord, cells: pd.DataFrame) -> str:
    """Render the page of a result as Markdown."""
    seeds = len(record.seeds)
    found, data = conclusion(record, cells), describe_stand_in(record.stand_in)
    lines = [
        f"# {record.title}",
        "",
        *([f"**{found}**", ""] if found else []),
        *([data, ""] if data else []),
        build_table(record.table, cells, seeds).to_markdown(),
        *([f"![{record.title}]({FIGURE})", ""] if record.figure else []),
        "## How to read it",
        "",
        f"{legend(record.table, seeds)} {record.note}".strip(),
        "",
        *(["## Remarks", "", *(f"- {remark}" for remark in record.remarks), ""] if record.remarks else []),
        "## How it was made",
        "",
        *(f"- {name}: {text}" for name, text in how_it_was_made(record, cells).items()),
    ]
    return "\n".join(lines) + "\n"


def refuse_other_result(experiment: Experiment, settings: ExperimentSettings, out: Path) -> None:
    """Refuse to overwrite, under a chosen name, the result of another scale or of more seeds."""
    folder = out / settings.folder(experiment)
    if settings.name is None or not (folder / RECORD).is_file():
        return
    found = read_record_of(folder)
    if found.scale != settings.scale.record():
        raise FirststepError(
            f"{folder} holds a result with scale {describe_scale(found.scale)}; choose another `name`"
        )
    if lost := set(found.seeds) - set(settings.seeds or DEFAULT_SEEDS):
        listed = ", ".join(map(str, found.seeds))
        raise FirststepError(
            f"{folder} holds a result with seeds {listed}, of which {', '.join(map(str, sorted(lost)))} "
            "would be lost; name them in `seeds`, or choose another `name`"
        )


def csv_text(record: ResultRecord, frame: pd.DataFrame) -> str:
    """Render numbers in long form, after ``#`` lines (``read_csv(comment="#")``) with the command."""
    head = f"# {shlex.join(record.command)}\n# {RECORD} says how it was made\n"
    return head + frame.to_csv(index=False, lineterminator="\n")


def rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with its numbers as they are stored."""
    numbers = {name: frame[name].map(_rounded) for name in frame if frame[name].dtype == float}
    return frame.assign(**numbers)


def _rounded(value: float) -> float:
    is_large = abs(value) >= 10 ** (SIGNIFICANT - DECIMALS)
    return round(value, DECIMALS) if is_large else float(f"{value:.{SIGNIFICANT}g}")
