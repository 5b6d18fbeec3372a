"""Our numbers beside the paper's: one line per cell as data, and the table that people read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from firststep.evaluation import METRICS, metrics_of
from firststep.paper.experiment import Experiment, Row
from firststep.paper.measurements import CELL
from firststep.paper.record import Column, Layout, TableRow
from firststep.utils.table import MISSING, Cell, Table

LINES = {
    "ours": ("accuracy", "ci95"),
    "paper": ("paper_accuracy", "paper_ci95"),
    "ours − paper": ("difference", "difference_ci95"),
    "gain, ours": ("gain", "gain_ci95"),
    "gain, paper": ("paper_gain", "paper_gain_ci95"),
}
"""Lines of a row in the table → the columns of their values and half-widths."""
PRINTED = ("paper", "gain, paper")
"""Lines that hold the paper's numbers."""
ON_REQUEST = ("support_loss", "largest_share", "class_offset")
"""Metrics that a table shows only if the experiment names them; all others are always shown."""
COUNTS = {"ours": "seeds", "gain, ours": "gain_seeds"}
"""Lines with numbers of ours → the column of the number of trainings behind them."""
FROM_PAPER = ("dataset", "accuracy", "ci95", "gain", "gain_ci95")
Numbers = dict[Column, dict[str, Any]]
"""The numbers of a row by column."""


def beside_paper(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return a line per row, step and rate: ours, the paper's, the difference and the gains."""
    is_ours = accuracies["source"] == "ours"
    ours = accuracies[is_ours].drop(columns="source").rename(columns={"over": "gain_over"})
    paper = accuracies.loc[~is_ours, [*CELL, *FROM_PAPER]]
    paper = paper.rename(columns={column: f"paper_{column}" for column in FROM_PAPER})
    cells = ours.merge(paper, on=CELL, how="outer", sort=False)
    cells["difference"] = cells["accuracy"] - cells["paper_accuracy"]
    cells["difference_ci95"] = np.hypot(cells["ci95"], cells["paper_ci95"])
    order = {row: place for place, row in enumerate(accuracies["row"].unique())}
    cells = cells.assign(order=cells["row"].map(order)).sort_values(["order", *CELL[1:]], kind="stable")
    return cells.drop(columns="order").reset_index(drop=True)


def layout_of(experiment: Experiment, rows: Sequence[Row], cells: pd.DataFrame) -> Layout:
    """Return the rows and columns of the experiment's table.

    Args:
        experiment: which names the columns, or leaves them to the numbers.
        rows: the experiment's rows as they are run here.
        cells: the numbers (:func:`beside_paper`).
    """
    here = {row.label: row for row in rows}
    every = here | {row.label: row for row in experiment.rows if row.label not in here}
    found = {
        Column(int(step), float(times))
        for step, times in zip(cells["step"], cells["rate_multiplier"], strict=True)
    }
    asked = None if experiment.columns is None else {Column(*pair) for pair in experiment.columns}
    metrics = [name for name in metrics_of("classes") if name != "accuracy" and name not in ON_REQUEST]
    return Layout(
        rows=[TableRow(label=row.label, over=row.over, planned=row.label in here) for row in every.values()],
        columns=sorted(found if asked is None else found & asked),
        shows=[*metrics, *(name for name in experiment.shows if name not in metrics)],
    )


def build_table(
    layout: Layout,
    cells: pd.DataFrame,
    seeds: int = 1,
    *,
    title: str = "",
    lines: Collection[str] = tuple(LINES),
    only: Collection[str] | None = None,
    highlight: bool = False,
) -> Table:
    """Return the table: for every row ours, the paper's, their difference, and the gains over another row.

    Args:
        layout: rows and columns.
        cells: the numbers (:func:`beside_paper`).
        seeds: number of trainings per row that were asked for; cells with fewer are marked.
        title: of the table.
        lines: keys of ``LINES`` that are shown.
        only: labels of the rows that are shown; all rows if left out.
        highlight: whether gains of ours whose interval excludes zero are bold.
    """
    headings = [*map(heading, layout.columns), *map(_title, layout.shows)]
    table = Table(["row", "", *headings], title=title, left_aligned=2)
    over = {row.label: row.over for row in layout.rows}
    numbers = _by_row(cells)
    for label in dict.fromkeys([*over, *numbers]):
        if only is not None and label not in only:
            continue
        own = numbers.get(label, {})
        table.add_section()
        name, base = label, f"  over {over.get(label)}"
        for what in lines:
            is_there = any(pd.notna(cell[LINES[what][0]]) for cell in own.values())
            if not is_there and (what != "ours" or label not in over):
                continue
            if what.startswith("gain") and name != label:
                name, base = base, ""
            shown = [_number(own.get(column), what, seeds, highlight) for column in layout.columns]
            if not is_there:
                shown = [Cell(MISSING)] * len(layout.columns)
            before = [_before_first_step(own, each) for each in layout.shows] if what == "ours" else []
            table.add_row(name, what, *shown, *before)
            name = ""
    return table


def _by_row(cells: pd.DataFrame) -> dict[str, Numbers]:
    found: dict[str, Numbers] = {}
    for cell in cells.to_dict("records"):
        column = Column(int(cell["step"]), float(cell["rate_multiplier"]))
        found.setdefault(cell["row"], {})[column] = cell
    return found


def heading(column: Column) -> str:
    """Return the heading of a column of accuracies."""
    times = column.rate_multiplier
    return f"step {column.step}" if times == 1 else f"step {column.step} ×{times:g}"


def _title(shown: str) -> str:
    if shown == "condition_number":
        return "κ"
    if shown not in METRICS:
        return shown.replace("_", " ")
    return METRICS[shown].title + (" %" if METRICS[shown].percent else "")


def _number(cell: dict[str, Any] | None, what: str, asked: int, highlight: bool) -> Cell:
    """Return a number with its half-width, and the number of trainings if some are missing."""
    value, width = LINES[what]
    is_difference = not value.endswith("accuracy")
    if cell is None or pd.isna(cell[value]):
        return Cell("" if is_difference else MISSING)
    number, half_width = cell[value], cell[width]
    rounded = round(number, 2) + 0.0  # turns -0.0 into 0.0
    interval = "" if pd.isna(half_width) else f" ± {half_width:.2f}"
    text = f"{rounded:{'+' if is_difference else ''}.2f}{interval}{_mark(cell, what, asked)}"
    return Cell(text, bold=highlight and what == "gain, ours" and bool(abs(number) > half_width))


def _mark(cell: dict[str, Any], what: str, asked: int) -> str:
    """Return the number of trainings behind a number of ours, if some are missing."""
    if what not in COUNTS or pd.isna(cell[COUNTS[what]]):
        return ""
    done = int(cell[COUNTS[what]])
    return f" ({done} of {asked})" if 0 < done < asked else ""


def _before_first_step(numbers: Numbers, name: str) -> str:
    """Return a metric of our model before the first step, or its number of parameters."""
    if name == "parameters":
        known = [cell[name] for cell in numbers.values() if pd.notna(cell[name])]
        return f"{max(known):,.0f}" if known else ""
    value = numbers.get(Column(0), {}).get(name)
    if value is None or pd.isna(value):
        return ""
    return f"{value:.1f}" if name in METRICS and METRICS[name].percent else f"{value:.3g}"
